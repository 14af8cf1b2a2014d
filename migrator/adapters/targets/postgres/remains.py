"""Remains of a migration in a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import psycopg

from migrator.adapters.targets.postgres.ledger import HISTORY, LEDGER
from migrator.adapters.targets.postgres.mirror.tables import FILLED, FILLING
from migrator.adapters.targets.postgres.mirror.tables import SCHEMA as MIRROR
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.refusal import NO_PRIVILEGE, explained
from migrator.adapters.targets.postgres.remap import Statements
from migrator.adapters.targets.postgres.rows.executor_staging import staging_prefix
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.order import parents_first
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.control_tables import ControlTables, Pointing, Refusals
from migrator.adapters.targets.shared.remains import TargetRemains
from migrator.model.table import TableId
from migrator.schema.acts import act_sql
from migrator.schema.dialects import CONTROL_SCHEMA

_EXISTS = "SELECT pg_catalog.to_regclass(%s) IS NOT NULL"
_IN_SCHEMA = (
    "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relkind IN ('r', 'p')"
)
_THERE = f"{_IN_SCHEMA} AND c.relname = ANY(%s) ORDER BY 1"
_BEGINNING = f"{_IN_SCHEMA} AND pg_catalog.starts_with(c.relname::text, %s) ORDER BY 1"
_ESTIMATE = (
    "SELECT greatest(reltuples, 0)::bigint FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%s)"
)
# Keys of partitions are those of the whole table, once more.
_KEYS = """
SELECT c.conname::text, cn.nspname::text, cr.relname::text, pn.nspname::text, pr.relname::text,
       ARRAY(SELECT a.attname FROM unnest(c.conkey) k(attnum)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum)::text[]
FROM pg_catalog.pg_constraint c
JOIN pg_catalog.pg_class cr ON cr.oid = c.conrelid JOIN pg_catalog.pg_namespace cn ON cn.oid = cr.relnamespace
JOIN pg_catalog.pg_class pr ON pr.oid = c.confrelid JOIN pg_catalog.pg_namespace pn ON pn.oid = pr.relnamespace
WHERE c.contype = 'f' AND c.conparentid = 0
  AND pn.nspname = %s AND pr.relname = ANY(%s)
"""
_MAY_TRUNCATE = (
    "SELECT bool_and(pg_catalog.has_table_privilege(name::regclass, 'TRUNCATE')) FROM unnest(%s::text[]) name"
)
_OFF = "SET LOCAL session_replication_role = replica"


class _Session(Statements):
    """A short session, with its transactions."""

    def __init__(self, connection: psycopg.Connection[Any]):
        super().__init__(connection)
        self.transaction = connection.transaction


class PostgresRemains(TargetRemains[_Session]):
    """``ports.remains.MarkedRemains`` on PostgreSQL.

    Args:
        settings: where the target is.
        names: the target tables that the mapping makes.
        key_maps: whether key maps are to go, too.
    """

    def __init__(self, settings: PostgresTarget, names: Sequence[str], key_maps: bool):
        control = ControlTables(
            ledger=_control(LEDGER.name),
            history=_control(HISTORY),
            entries=TableId(CONTROL_SCHEMA, "key_map"),
            counters=TableId(CONTROL_SCHEMA, "key_map_counter"),
            filled=_control(FILLED),
            mirror=f"schema {MIRROR}",
            schema=f"schema {CONTROL_SCHEMA}",
            beside=(_control(FILLING),),
        )
        ledger = replace(LEDGER, history=act_sql(HISTORY, lambda _, kind: f"%s::{kind}"))
        super().__init__(settings, names, key_maps, control, ledger, Refusals(psycopg.Error, explained))
        self._settings = settings

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        with catalog(self._settings) as connection:
            yield _Session(connection)

    def _transaction(self, session: _Session) -> AbstractContextManager[object]:
        return session.transaction()

    def _qualified(self, table: TableId) -> str:
        return qualified(table)

    def _quoted_columns(self, names: Sequence[str]) -> list[str]:
        return [quoted(name) for name in names]

    def _account(self) -> str:
        return quoted(self._settings.server.user)

    def _exists(self, session: _Session, table: TableId) -> bool:
        return bool(session.rows(_EXISTS, [qualified(table)])[0][0])

    def _tables(self, session: _Session, names: Sequence[str]) -> list[TableId]:
        schema = self._settings.server.schema
        return [TableId(schema, str(name)) for (name,) in session.rows(_THERE, [schema, list(names)])]

    def _pointing(self, session: _Session, names: Sequence[str]) -> list[Pointing]:
        found = session.rows(_KEYS, [self._settings.server.schema, list(names)])
        return [
            Pointing(TableId(child_schema, child), TableId(schema, parent), key, tuple(columns))
            for key, child_schema, child, schema, parent, columns in found
        ]

    def _estimate(self, session: _Session, table: TableId) -> int:
        return int(session.rows(_ESTIMATE, [qualified(table)])[0][0] or 0)

    def _staging(self, session: _Session) -> list[TableId]:
        found = session.rows(_BEGINNING, [CONTROL_SCHEMA, staging_prefix(self._migration)])
        return [TableId(CONTROL_SCHEMA, str(name)) for (name,) in found]

    def _mirror(self, session: _Session) -> list[TableId]:
        found = session.rows(_BEGINNING, [MIRROR, f"{self._migration}."])
        return [TableId(MIRROR, str(name)) for (name,) in found]

    def _empty(self, session: _Session, tables: Sequence[TableId]) -> None:
        """Empties by TRUNCATE where that is allowed; else row by row, children before parents, in one transaction.

        TRUNCATE refuses a table that others point at, even where no row does.
        """
        own, names = set(tables), [table.name for table in tables]
        keys = self._pointing(session, names)
        alone = all(key.child in own for key in keys)
        if alone and session.rows(_MAY_TRUNCATE, [[qualified(table) for table in tables]])[0][0]:
            session.run(f"TRUNCATE {', '.join(map(qualified, tables))}")
            return
        references = {table: [key.parent for key in keys if key.child == table] for table in tables}
        with session.transaction():
            self._without_keys(session)
            for table in reversed(parents_first(references)):
                session.run(f"DELETE FROM {qualified(table)}")

    def _without_keys(self, session: _Session) -> None:
        """Turns foreign keys and triggers off, as the run does while it dumps, if the role may: tables may point at
        each other in a circle."""
        try:
            with session.transaction():
                session.run(_OFF)
        except psycopg.Error as error:
            if error.sqlstate != NO_PRIVILEGE:
                raise
            session.run("SET CONSTRAINTS ALL DEFERRED")

    def _by_hand(self, deletes: str) -> str:
        return f"SET session_replication_role = replica; {deletes}; RESET session_replication_role"

    def _read_sql(self) -> str:
        return f"SELECT epoch, segment, format, checkpoint::text FROM {LEDGER.name} WHERE migration = %s"

    def _write_sql(self) -> str:
        return (
            f"UPDATE {LEDGER.name} SET epoch = %s, checkpoint = %s::text::jsonb, format = %s, updated_at = now()"
            " WHERE migration = %s"
        )

    def _mark_sql(self) -> str:
        return (
            f"INSERT INTO {LEDGER.name} AS l (migration, epoch, segment, format, checkpoint)"
            " VALUES (%s, %s, 0, %s, %s::text::jsonb) ON CONFLICT (migration) DO UPDATE SET epoch = %s, segment = 0,"
            " position_order = NULL, position_token = NULL, checkpoint = %s::text::jsonb, format = %s,"
            " updated_at = now()"
        )


def _control(name: str) -> TableId:
    schema, _, table = name.partition(".")
    return TableId(schema, table)
