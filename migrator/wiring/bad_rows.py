"""The rows of a migration that are set aside: read, tried again, given up, and asked for at the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from migrator.config.project import Settings
from migrator.errors import RequestError
from migrator.model.progress import BadRow
from migrator.run.commands.repair import repair_steps, wanted_of
from migrator.schema.bad_rows import drop_bad_row
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from migrator.wiring.repair import await_repair, begin_repair, running_leader
from migrator.wiring.target import bad_rows, target_database


def begin_retry(
    settings: Settings, rows: Sequence[BadRow], master: str | None, conf: Mapping[str, str]
) -> list[str]:
    """Asks the run to dump the source rows of these again; names of the requests. Raises ``RequestError``."""
    running_leader(settings)
    steps = repair_steps(
        wiring.parts(settings, master, conf, partial(load_applied, settings)),
        wanted_of(rows),
    )
    return begin_repair(
        settings, steps[::-1]
    )  # a row set aside is in the target no more: its children come after it


def await_retry(
    settings: Settings, names: Sequence[str], rows: Sequence[BadRow], wait_s: float
) -> list[BadRow]:
    """Waits until the requests are closed; those of the rows that are still set aside. Raises ``RequestError``."""
    await_repair(settings, names, wait_s)
    asked = {(one.target, one.columns, one.key) for one in rows}
    return [one for one in bad_rows(settings) if (one.target, one.columns, one.key) in asked]


def drop(settings: Settings, target: str, key: Sequence[str]) -> BadRow:
    """Notes that a row isn't to be migrated as it is; ``settings.reason`` says why. Raises ``RequestError``."""
    login, where = settings.target.user, settings.target.url()
    return drop_bad_row(
        target_database(settings), settings.name, (login, where), (target, tuple(key)), settings.reason
    )


def refuse_hand_over(settings: Settings, named: Collection[str]) -> None:
    """Raises ``RequestError`` while rows are set aside that nobody gave up, of tables that aren't ``named``."""
    left = [one for one in bad_rows(settings) if not one.dropped and one.target not in named]
    if left:
        raise RequestError(
            f"{len(left)} row(s) are set aside: the target lacks them",
            where="; ".join(f"{one.target} {one.key_text()}" for one in left[:10]),
            cause="the target refused them, and the application would miss them",
            remedy="mend them and `migrator rows retry`, give them up with `migrator rows drop`, or name their tables"
            " with --set-aside",
        )
