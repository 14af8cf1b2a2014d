"""An event log of one's own, on a machine that led before and leads again: is it still the target's?

While another machine led, it captured anew from the ledger's position and numbered its segments from there.
Segments of the same numbers here hold something else (see ``migrator.model.lineage``).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import newest_manifest, read_manifest
from migrator.adapters.event_log.files.parquet import decode_rows, read_checked
from migrator.adapters.event_log.files.places import places
from migrator.adapters.event_log.files.sequence import Sequence
from migrator.errors import DamageError, EventLogError
from migrator.model.ledger import Ledger
from migrator.model.lineage import continues


def set_aside(directory: str | os.PathLike[str], ledger: Ledger) -> bool:
    """Moves the event log to ``<directory>.replaced`` if the ledger was moved by another one; whether it did.

    One that was moved there before is removed: nothing in it is needed, it is kept to be looked at. Raises
    ``EventLogError`` when an output of change events reads it, or the disk refuses.
    """
    layout = Layout.of(directory)
    if _continues(layout, ledger):
        return False
    outputs = [stored.output for _, stored in places(layout)]
    if outputs:
        raise EventLogError(
            "this machine's event log was overtaken by another leader's, and outputs read it",
            where=", ".join(outputs),
            cause="what another machine captured meanwhile is not in it",
            remedy="forget these outputs (migrator events --forget) and begin them anew; outputs that go on over a"
            " takeover need a shared event log ([coordination] shared_event_log)",
        )
    away = Path(f"{layout.directory}.replaced")
    try:
        shutil.rmtree(away, ignore_errors=True)
        os.rename(layout.directory, away)
    except OSError as error:
        raise durable.disk_refused("the event log can't be set aside", layout.directory, error) from error
    return True


def set_damage_aside(directory: str | os.PathLike[str], ledger: Ledger) -> str:
    """Moves a damaged event log to ``<directory>.damaged`` and puts an empty one in its place; where it is now.

    Empty: everything that the target doesn't hold yet is sound. ``ledger`` must be taken over under the present
    leader's epoch: the empty log has that epoch from its first moment on, so a leader that slept finds the
    old directory, none, or one that refuses it.

    Raises the damage itself, with what to do first, when an output of change events reads the log, or one was set
    aside before: a disk that damages one log after the other needs somebody to look at it.
    """
    layout = Layout.of(directory)
    damage = _damage(layout, ledger.segment)
    if damage is None:
        return ""
    away, fresh = Path(f"{layout.directory}.damaged"), Path(f"{layout.directory}.fresh")
    outputs = [stored.output for _, stored in places(layout)]
    if outputs:
        raise _refused(damage, f"forget these outputs (migrator events --forget): {', '.join(outputs)}")
    if away.exists():
        raise _refused(damage, f"look at the disk, for this is the second damage, and remove {away}")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        durable.make_directory(fresh)
        durable.raise_number(fresh / layout.epoch.name, ledger.epoch)
        os.rename(layout.directory, away)
        os.rename(fresh, layout.directory)
        durable.sync_directory(layout.directory.parent)
    except OSError as error:
        raise durable.disk_refused("the event log can't be set aside", layout.directory, error) from error
    return str(away)


def _damage(layout: Layout, after: int) -> DamageError | None:
    """The first damage among the segments above ``after`` and the newest; None: there is none."""
    sequence = Sequence(layout)
    try:
        newest = newest_manifest(layout)
        for number in range(after + 1, newest.number + 1 if newest is not None else 0):
            manifest = sequence.manifest(number)
            if manifest is None:
                sequence.check_gap(number)
                continue
            for file in manifest.files:
                decode_rows(file, read_checked(file, number), number)
    except DamageError as error:
        return error
    return None


def _refused(damage: DamageError, first: str) -> EventLogError:
    return EventLogError(
        damage.what,
        where=damage.where,
        cause=damage.cause,
        remedy=f"{first}; then start again: what was lost is captured again, if the source still holds its log",
    )


def _continues(layout: Layout, ledger: Ledger) -> bool:
    """Tells whether the event log goes on from where the ledger stands."""
    applied = read_manifest(layout, ledger.segment) if ledger.segment else None
    following = read_manifest(layout, ledger.segment + 1)
    return not continues(ledger, newest_manifest(layout), applied, following)
