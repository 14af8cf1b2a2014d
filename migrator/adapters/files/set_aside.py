"""An event log of one's own, on a machine that led before and leads again: is it still the target's?

While another machine led, it captured anew from the ledger's position and numbered its segments from there. Segments
of the same numbers here hold something else. What tells them apart is the checkpoint of the segment that the ledger
has applied last: the target is where that checkpoint says, whoever wrote it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from migrator.adapters.files import durable
from migrator.adapters.files.layout import Layout
from migrator.adapters.files.manifest_file import newest_manifest, read_manifest
from migrator.adapters.files.places import places
from migrator.errors import EventLogError
from migrator.model.ledger import Ledger


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


def _continues(layout: Layout, ledger: Ledger) -> bool:
    """Whether the event log goes on from where the ledger stands."""
    newest = newest_manifest(layout)
    if newest is None:
        return True
    if newest.number < ledger.segment:
        return False
    # Without that manifest nothing was applied yet, or it was released, and this log's writer applied it itself: the
    # ledger never falls, so nobody moved it since.
    applied = read_manifest(layout, ledger.segment) if ledger.segment else None
    return applied is None or applied.checkpoint == ledger.checkpoint
