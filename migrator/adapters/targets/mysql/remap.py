"""State of targets, seen from outside the run: which joined ones are in step with the mirror, which have rows, and
which tables they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_database
from migrator.adapters.targets.mysql.reflect import DRIVER_ERRORS, Catalog, catalog
from migrator.adapters.targets.mysql.refusal import explained
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.remap import FilledTargets
from migrator.model.progress import TableIdentity
from migrator.model.remaps.remap import beside_name
from migrator.model.table import TableId

_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

_BYTES = (
    "SELECT COALESCE(data_length, 0) + COALESCE(index_length, 0) FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name = %s"
)
# The time at which a table was made has whole seconds, and also moves with an ALTER that copies it.
_TIMES = (
    "SELECT table_name, DATE_FORMAT(create_time, '%%Y-%%m-%%d %%H:%%i:%%s') FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name IN %s AND create_time IS NOT NULL"
)
_COLUMNS = (
    "SELECT t.table_name, DATE_FORMAT(t.create_time, '%%Y-%%m-%%d %%H:%%i:%%s'), c.column_name, c.column_type"
    " FROM information_schema.tables t JOIN information_schema.columns c"
    " ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
    " WHERE t.table_schema = %s AND t.table_type = 'BASE TABLE' AND t.create_time IS NOT NULL"
    " ORDER BY 1, c.ordinal_position"
)


def filled(settings: MysqlTarget) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``,
    ``TargetError``."""
    with catalog(settings) as session:
        return _record(settings).segments(session) if _exists(session, settings, "filled") else []


def holds_rows(settings: MysqlTarget, target: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``, ``TargetError``."""
    with catalog(settings) as session:
        return bool(
            session.rows(f"SELECT 1 FROM {qualified(TableId(settings.server.database, target))} LIMIT 1")
        )


def table_bytes(settings: MysqlTarget, target: str) -> int:
    """Returns the bytes that a target table takes on disk, with its indexes, as the server estimates them. Raises
    ``ConnectionFailed``, ``TargetError``."""
    with catalog(settings) as session:
        rows = session.rows(_BYTES, [settings.server.database, target])
    return int(rows[0][0]) if rows else 0


def identities(settings: MysqlTarget, tables: Sequence[str]) -> dict[str, TableIdentity]:
    """Returns the times at which the tables were made. Raises ``ConnectionFailed``."""
    with catalog(settings) as session:
        times = dict(session.rows(_TIMES, [settings.server.database, [*tables, LEDGER.name]]))
    return {
        name: TableIdentity(str(times[name]), str(times.get(LEDGER.name))) for name in tables if name in times
    }


def renamed_to(settings: MysqlTarget, target: str, identity: TableIdentity) -> str:
    """Returns a table with a target's columns that may be what the target was, under another name; else "".

    MySQL leaves a table that is renamed the time at which it was made, MariaDB moves it. One that is filled by a next
    mapping was never the target. Raises ``ConnectionFailed``.
    """
    times: dict[str, str] = {}
    columns: dict[str, list[tuple[Any, Any]]] = {}
    with catalog(settings) as session:
        for name, time, column, kind in session.rows(_COLUMNS, [settings.server.database]):
            times[str(name)] = str(time)
            columns.setdefault(str(name), []).append((column, kind))
    moved = settings.server.kind == "mariadb"
    found = (
        name
        for name, time in times.items()
        if name not in (target, beside_name(target)) and columns[name] == columns.get(target)
        if time == identity.table or (moved and time > identity.table)
    )
    return next(found, "")


def forget_filled(settings: MysqlTarget, target: str) -> bool:
    """Makes the run fill a target anew, with its next batch; False if it wasn't filled yet.

    Raises ``ConnectionFailed``, and ``TargetError`` when the user may not.
    """
    with catalog(settings) as session:
        if not _exists(session, settings, "filled"):
            return False
        record = _record(settings, _exists(session, settings, "filling"))
        with record.refusals_named(DRIVER_ERRORS, explained):
            forgotten = record.forget(session, target)
            session.run("COMMIT")
            return forgotten


def _record(settings: MysqlTarget, filling: bool = False) -> FilledTargets:
    database = settings.server.database
    return FilledTargets(
        control_table(database, "filled"),
        control_table(database, "filling") if filling else "",
        settings,
        LEDGER.history,
    )


def _exists(session: Catalog, settings: MysqlTarget, name: str) -> bool:
    return bool(session.rows(_EXISTS, [mirror_database(settings.server.database), name]))
