"""The source's structure, and what log reading needs there: one publication and one replication slot.

Grants needed: REPLICATION, CONNECT, SELECT on the tables and USAGE on their schema. ``prepare`` makes the
publication itself if the role owns the tables and may CREATE in the database; otherwise an owner makes it once,
with the statement that preflight prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from migrator.adapters.sources.postgres.chunks.check_scope import check_scope
from migrator.adapters.sources.postgres.chunks.doubted import condition
from migrator.adapters.sources.postgres.chunks.read_view import present_position
from migrator.adapters.sources.postgres.connection import connect, query_failure
from migrator.adapters.sources.postgres.log.relations import WATERMARK_ID
from migrator.adapters.sources.postgres.log.slot import SLOT_STATE, SlotState
from migrator.adapters.sources.postgres.open_transactions import open_transactions
from migrator.adapters.sources.postgres.preflight import findings
from migrator.adapters.sources.postgres.publication import check_covers, join_publication, publish
from migrator.adapters.sources.postgres.reflection import psycopg_query, reflect
from migrator.adapters.sources.postgres.settings import WATERMARK, PostgresSource
from migrator.errors import SourceError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.position import Position
from migrator.model.reach import Reference
from migrator.model.requests.request import Scope
from migrator.model.table import Column, TableId, TableSchema

_ESTIMATE = """
SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::int8
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND (
  (n.nspname = $1 AND c.relname = $2)
  OR c.oid IN (SELECT t.relid FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace m ON m.oid = r.relnamespace
               CROSS JOIN LATERAL pg_catalog.pg_partition_tree(r.oid) t
               WHERE r.relkind = 'p' AND m.nspname = $1 AND r.relname = $2))
"""
_REFERENCES = """
SELECT cn.nspname, cc.relname, pn.nspname, pc.relname,
       (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.conkey) WITH ORDINALITY k (number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number),
       (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.confkey) WITH ORDINALITY k (number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number),
       EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oid OPERATOR(pg_catalog.=) ANY (f.conpfeqop)
               AND o.oprnamespace OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace)
FROM pg_catalog.pg_constraint f
JOIN pg_catalog.pg_class cc ON cc.oid = f.conrelid JOIN pg_catalog.pg_namespace cn ON cn.oid = cc.relnamespace
JOIN pg_catalog.pg_class pc ON pc.oid = f.confrelid JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
WHERE f.contype = 'f' AND cn.nspname = ANY ($1) AND pn.nspname = ANY ($1)
"""
_WATERMARK_ROW = """
INSERT INTO migrator.watermark (migration, token, kind) VALUES ($1, '', 'low') ON CONFLICT (migration) DO NOTHING
"""
_MAY_FAIL_OVER = (
    "SELECT pg_catalog.current_setting('server_version_num')::int4 >= 170000"
    " AND NOT pg_catalog.pg_is_in_recovery()"
)
_SLOT_TIMEOUT = "300s"

Result = TypeVar("Result")


def table_id(source: PostgresSource, name: str) -> TableId:
    """A table of the configured schema. Dots are part of its name."""
    return TableId(source.server.schema, name)


class PostgresCatalog:
    """Implements ``SourceCatalog``. Opens a connection per call and closes it again."""

    def __init__(self, source: PostgresSource):
        self._source = source

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        """See ``SourceCatalog.tables``. Also raises SourceError for tables without a usable key."""
        wanted = [table_id(self._source, name) for name in names]
        found = self._with_connection(
            "the source's tables can't be read",
            lambda connection: [
                reflect(psycopg_query(connection), table, self._source.choices(table)) for table in wanted
            ],
        )
        missing = [str(table) for table, reflected in zip(wanted, found, strict=True) if reflected is None]
        if missing:
            raise SourceError(
                f"the source has no such table: {', '.join(missing)}",
                where=self._source.server.address,
                remedy="correct the names in the mapping, or source.schema",
            )
        schemas = [reflected.schema for reflected in found if reflected is not None]
        keyless = [str(schema.id) for schema in schemas if not schema.key]
        if keyless:
            raise SourceError(
                f"no usable key: {', '.join(keyless)}",
                where=self._source.server.address,
                cause="neither an immediate primary key nor a unique index on columns that are NOT NULL",
                remedy="add a primary key: ALTER TABLE ... ADD PRIMARY KEY (...);",
            )
        return schemas

    def references(self, tables: Sequence[TableSchema]) -> list[Reference]:
        """See ``SourceCatalog.references``."""
        rows = self._with_connection(
            "the source's foreign keys can't be read",
            lambda connection: connection.execute(
                _REFERENCES, [sorted({schema.id.schema for schema in tables})]
            ).fetchall(),
        )
        known = {schema.id for schema in tables}
        found = [
            Reference(
                TableId(schema, child), tuple(columns), TableId(parent_schema, parent), tuple(parents), own
            )
            for schema, child, parent_schema, parent, columns, parents, own in rows
        ]
        return [one for one in found if {one.child, one.parent} <= known]

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """See ``SourceCatalog.preflight``."""
        wanted = [table_id(self._source, name) for name in tables]
        return self._with_connection(
            "preflight of the source failed",
            lambda connection: findings(self._source, psycopg_query(connection), wanted),
        )

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        """See ``SourceCatalog.prepare``. Raises GapError when the slot exists but lost its log.

        It adds missing tables to the publication. For a migration that runs already, let the log reader's ``start``
        see a table that somebody took out (a gap) before this puts it back: call ``prepare`` for first starts only.
        """
        self._with_connection(
            "the source can't be prepared for log reading",
            lambda connection: self._prepare(connection, [schema.id for schema in tables]),
        )

    def adopt(self, tables: Sequence[TableId]) -> None:
        """See ``SourceCatalog.adopt``: they join the publication, once their old rows are logged whole.

        A table that joined earlier would have changes in the log that can't be read.
        """
        self._with_connection(
            "a table that replaced a captured one can't join the publication",
            lambda connection: join_publication(self._source, connection, tables),
        )

    def estimated_rows(self, table: TableSchema) -> int:
        """See ``SourceCatalog.estimated_rows``: ``reltuples``, summed over partitions."""
        return self._with_connection(
            "the size of a table can't be read",
            lambda connection: int(
                connection.execute(_ESTIMATE, [table.id.schema, table.id.name]).fetchone()[0]
            ),
        )

    def check_scope(self, table: TableSchema, scope: Scope) -> None:
        """See ``SourceCatalog.check_scope``."""
        self._with_connection(
            "the rows to dump can't be checked", lambda connection: check_scope(connection, table, scope)
        )

    def doubted(self, column: Column, rule: Rule) -> str:
        """See ``SourceCatalog.doubted``."""
        return condition(column, rule)

    def position(self) -> Position:
        """See ``SourceCatalog.position``; ``read_view`` has the reasons."""
        return self._with_connection(
            "the source's log position can't be read",
            lambda connection: present_position(connection.cursor()),
        )

    def _prepare(self, connection: Any, tables: list[TableId]) -> None:
        captured = [*tables, WATERMARK_ID] if self._source.placement == WATERMARK else tables
        if self._source.placement == WATERMARK:
            connection.execute(_WATERMARK_ROW, [self._source.migration])
        row = connection.execute(f"{SLOT_STATE} WHERE slot_name = $1", [self._source.slot]).fetchone()
        if row is not None:
            SlotState.of(*row).checked(self._source)
            # A slot is never made before its publication: if that is wrong now, somebody changed it meanwhile.
            # Tables may be missing, though: a migration can get more of them.
            check_covers(self._source, psycopg_query(connection), [])
        # Publication first: a slot decodes with the catalog as of each place in its log, and would decode without
        # the publication where it didn't exist yet.
        publish(self._source, connection, captured)
        if row is None:
            self._make_slot(connection)

    def _make_slot(self, connection: Any) -> None:
        """Waits for the transactions that are open now to end; others go on meanwhile."""
        connection.execute(f"SET statement_timeout = '{_SLOT_TIMEOUT}'")
        connection.execute(f"SET lock_timeout = '{_SLOT_TIMEOUT}'")
        try:
            ((failover,),) = connection.execute(_MAY_FAIL_OVER).fetchall()
            options = ", false, false, true" if failover and self._source.failover else ""
            connection.execute(
                f"SELECT pg_catalog.pg_create_logical_replication_slot($1, 'pgoutput'{options})",
                [self._source.slot],
            )
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
            raise SourceError(
                "the replication slot can't be made beside transactions that are still open",
                where=self._source.server.address,
                cause=open_transactions(psycopg_query(connection)) or str(error),
                remedy="end them, prepared ones with COMMIT PREPARED or ROLLBACK PREPARED; then start again."
                " If the source is a standby: SELECT pg_log_standby_snapshot(); on its primary, while this waits",
            ) from error

    def _with_connection(self, what: str, work: Callable[[Any], Result]) -> Result:
        connection = connect(self._source, "catalog")
        try:
            return work(connection)
        except psycopg.Error as error:
            raise query_failure(self._source, what, error) from error
        finally:
            connection.close()
