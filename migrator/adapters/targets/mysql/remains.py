"""Remains of a migration in a MySQL or MariaDB target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from migrator.adapters.targets.mysql.key_maps import COUNTERS, ENTRIES
from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.reflect import DRIVER_ERRORS, Catalog, catalog
from migrator.adapters.targets.mysql.refusal import explained
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.control_tables import ControlTables, Pointing, Refusals
from migrator.adapters.targets.shared.remains import TargetRemains
from migrator.connections.mysql.sql import account
from migrator.model.table import TableId
from migrator.schema.dialects import MYSQL_HISTORY, MYSQL_LEDGER

_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_THERE = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name IN %s"
    " AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1"
)
_BEGINNING = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND LOCATE(%s, table_name) = 1"
    " ORDER BY 1"
)
_ESTIMATE = "SELECT table_rows FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_KEYS = (
    "SELECT constraint_name, table_schema, table_name, referenced_table_name, column_name"
    " FROM information_schema.key_column_usage WHERE referenced_table_schema = %s AND referenced_table_name IN %s"
    " ORDER BY table_schema, table_name, constraint_name, ordinal_position"
)
_PART_ROWS = 20_000


class MysqlRemains(TargetRemains[Catalog]):
    """``ports.remains.MarkedRemains`` on MySQL and MariaDB.

    Args:
        settings: where the target is.
        names: the target tables that the mapping makes.
        key_maps: whether key maps are to go, too.
    """

    def __init__(self, settings: MysqlTarget, names: Sequence[str], key_maps: bool):
        database, mirror = settings.server.database, mirror_database(settings.server.database)
        control = ControlTables(
            ledger=TableId(database, MYSQL_LEDGER),
            history=TableId(database, MYSQL_HISTORY),
            entries=TableId(database, ENTRIES),
            counters=TableId(database, COUNTERS),
            filled=TableId(mirror, "filled"),
            mirror=f"database {mirror}",
            schema=f"{MYSQL_LEDGER} and whatever else begins with migrator_,",
            beside=(TableId(mirror, "filling"), TableId(mirror, "moved")),
        )
        refusals = Refusals(DRIVER_ERRORS, explained)
        super().__init__(settings, names, key_maps, control, LEDGER, refusals)
        self._settings = settings

    def _session(self) -> AbstractContextManager[Catalog]:
        return catalog(self._settings)

    @contextmanager
    def _transaction(self, session: Catalog) -> Iterator[None]:
        """Commits at the end; a failure ends the session, and with it what isn't committed. DROP commits alone."""
        yield
        session.run("COMMIT")

    def _qualified(self, table: TableId) -> str:
        return qualified(table)

    def _quoted_columns(self, names: Sequence[str]) -> list[str]:
        return [quoted(name) for name in names]

    def _account(self) -> str:
        return account(self._settings.server.user)

    def _exists(self, session: Catalog, table: TableId) -> bool:
        return bool(session.rows(_EXISTS, [table.schema, table.name]))

    def _tables(self, session: Catalog, names: Sequence[str]) -> list[TableId]:
        database = self._settings.server.database
        found = session.rows(_THERE, [database, list(names)]) if names else []
        return [TableId(database, _text(name)) for (name,) in found]

    def _pointing(self, session: Catalog, names: Sequence[str]) -> list[Pointing]:
        database = self._settings.server.database
        columns: dict[tuple[str, ...], list[str]] = {}
        for *key, column in session.rows(_KEYS, [database, list(names)]):
            columns.setdefault(tuple(map(_text, key)), []).append(_text(column))
        return [
            Pointing(TableId(schema, child), TableId(database, parent), key, tuple(found))
            for (key, schema, child, parent), found in columns.items()
        ]

    def _estimate(self, session: Catalog, table: TableId) -> int:
        found = session.rows(_ESTIMATE, [table.schema, table.name])
        return int(found[0][0] or 0) if found else 0

    def _staging(self, session: Catalog) -> list[TableId]:
        """None: staging tables here are temporary ones of the writing session."""
        return []

    def _mirror(self, session: Catalog) -> list[TableId]:
        database = mirror_database(self._settings.server.database)
        found = session.rows(_BEGINNING, [database, f"{self._migration}."])
        return [TableId(database, _text(name)) for (name,) in found]

    def _empty(self, session: Catalog, tables: Sequence[TableId]) -> None:
        """Deletes in parts, each a transaction: one large one would have the server keep all rows for an undo.

        Foreign keys are off in our sessions. Not by TRUNCATE, which needs DROP on the table, and begins its numbers
        anew.
        """
        for table in tables:
            while session.run(f"DELETE FROM {qualified(table)} LIMIT {_PART_ROWS}"):
                session.run("COMMIT")
        session.run("COMMIT")

    def _read_sql(self) -> str:
        return LEDGER.read

    def _write_sql(self) -> str:
        return (
            f"UPDATE {MYSQL_LEDGER} SET epoch = %s, checkpoint = %s, format = %s, updated_at = CURRENT_TIMESTAMP"
            " WHERE migration = %s"
        )

    def _mark_sql(self) -> str:
        return (
            f"INSERT INTO {MYSQL_LEDGER} (migration, epoch, segment, format, checkpoint) VALUES (%s, %s, 0, %s, %s)"
            " ON DUPLICATE KEY UPDATE epoch = %s, segment = 0, position_order = NULL, position_token = NULL,"
            " checkpoint = %s, format = %s, updated_at = CURRENT_TIMESTAMP"
        )


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
