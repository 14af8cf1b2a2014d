"""The places that a reset looks at, and who may reset."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime

from migrator.config.project import Settings
from migrator.errors import FencedError, RequestError
from migrator.model.ledger import Ledger
from migrator.model.remaps.remap import remap_of
from migrator.model.table import TableId
from migrator.ports.remains import Found, Left
from migrator.run.commands import reset as core
from migrator.run.commands.dump_order import DumpOrder
from migrator.run.commands.reset import Places
from migrator.run.commands.reset_table import TableReset, chosen, planned, reset_table
from migrator.run.steps import step_hook
from migrator.wiring import parts as wiring
from migrator.wiring.coordination import leadership, processes, requests, shared_remains, state_remains
from migrator.wiring.half_reset import refuse_half
from migrator.wiring.source import source_remains
from migrator.wiring.target import filled, forget_filled, peek, target_remains
from verify.tables.coverage import forget_coverage


def places(settings: Settings, key_maps: bool) -> Places:
    """All places of the migration. Raises ``MappingError``: which tables are emptied, the mapping says."""
    mapped = [target.name for target in wiring.mapping(settings)]
    return Places(
        source_remains(settings),
        target_remains(settings, mapped, key_maps),
        shared_remains(settings),
        state_remains(settings),
    )


def refuse_processes(settings: Settings) -> None:
    """Raises ``FencedError`` naming a process that leads or stands by: it would go on, or begin anew at once."""
    leader, standbys = processes(settings)
    if leader or standbys:
        who = [f"{leader} leads"] if leader else []
        raise FencedError(
            "the migration runs",
            where=settings.name,
            cause=", ".join([*who, *(f"{standby} stands by" for standby in standbys)]),
            remedy="stop it (Ctrl-C, or SIGTERM to that process), standbys first; then repeat `migrator reset`",
        )


def reset(settings: Settings, here: Places, shown: list[Found]) -> list[tuple[str, Left]]:
    """Removes what was shown (see ``run.commands.reset``)."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    said = f"begun at {now} by process {os.getpid()} on {socket.gethostname()}"
    return core.reset(here, leadership(settings), shown, said, step_hook(os.environ))


def table_plan(settings: Settings, table: str) -> TableReset:
    """Returns what starting one target table anew takes. Changes nothing.

    Raises ``MappingError`` for a table that the mapping doesn't make, ``HalfResetError``, ``RequestError``.
    """
    refuse_half(settings)
    mapped = {target.name: target for target in wiring.mapping(settings)}
    chosen(table, list(mapped))
    if mapped[table].grain is not None:
        return TableReset(table, table in {name for name, _ in filled(settings)}, None, (), joined=True)
    ledger = peek(settings)
    _refuse_remap(ledger, table)
    rows = target_remains(settings, list(mapped), key_maps=False).rows_of(table)
    return planned(table, list(mapped[table].sources), ledger, requests(settings).read(), rows)


def _refuse_remap(ledger: Ledger | None, table: str) -> None:
    """Raises ``RequestError`` while a next mapping of the table is on its way: its rows would come all the same."""
    remap = remap_of(None if ledger is None else ledger.checkpoint, table)
    if remap is not None and remap.beside:
        raise RequestError(
            f"a next mapping of {table} is on its way",
            where=f"--table {table}",
            cause=f"{remap.beside} is filled by it, or isn't dropped yet",
            remedy=f"let the run end it, or give it up: migrator remap {table} --abort; then repeat `migrator reset`",
        )


def reset_one(settings: Settings, shown: TableReset) -> str:
    """Starts one target table anew; returns the dump request that brings its rows, empty if none is needed."""
    forget_coverage(shown.target, settings.reports())
    if shown.joined:
        forget_filled(settings, shown.target)
        return ""

    def ask(tables: tuple[TableId, ...]) -> str:
        order = DumpOrder(tuple(table.name for table in tables))
        return wiring.start_dump(settings, order).requests[-1].id

    mapped = [target.name for target in wiring.mapping(settings)]
    target = target_remains(settings, mapped, key_maps=False)
    return reset_table(
        lambda: table_plan(settings, shown.target),
        shown,
        target,
        leadership(settings),
        ask,
        step_hook(os.environ),
    )
