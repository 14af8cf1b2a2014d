"""The source's structure where triggers capture changes. Nothing is made here: that is for the owner of the tables.

Grants needed: CONNECT, SELECT on the tables and USAGE on their schema, USAGE on ``migrator_cdc`` and SELECT on what
is in it; EXECUTE on ``migrator_cdc.forget`` if changes that were read are to be deleted. No REPLICATION.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from migrator.adapters.sources.postgres.catalog import PostgresCatalog, table_id
from migrator.adapters.sources.postgres.change_tables.capture_facts import REMEDY
from migrator.adapters.sources.postgres.change_tables.capture_facts import (
    findings as capture_findings,
)
from migrator.adapters.sources.postgres.change_tables.layout import (
    COMMENT,
    FORGET,
    FORMAT,
    SCHEMA,
    change_table,
    check_names,
    identifier,
    script,
)
from migrator.adapters.sources.postgres.change_tables.view import VIEW, View
from migrator.adapters.sources.postgres.connection import RECOVERY
from migrator.adapters.sources.postgres.preflight import SETTINGS, standby, version
from migrator.adapters.sources.postgres.preflight_tables import table_findings
from migrator.adapters.sources.postgres.preflight_values import text_column_findings
from migrator.adapters.sources.postgres.reflection import (
    Query,
    ReflectedTable,
    psycopg_query,
    reflect,
)
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.connections.postgres.collations import stale_orders
from migrator.errors import SourceError
from migrator.model.codecs.codec import NEWER
from migrator.model.finding import Finding
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

_ROLE = "SELECT current_user::text, pg_catalog.to_regnamespace($1::text) IS NOT NULL"
_BODIES = """
SELECT p.proname::text, p.prosrc FROM pg_catalog.pg_proc p
WHERE p.pronamespace = pg_catalog.to_regnamespace($1::text) AND p.proname IN ('command', 'forget')
"""
_MAY_USE = "SELECT pg_catalog.has_schema_privilege($1::text, 'USAGE')"
_MAY_READ = """
SELECT coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass($1::text), 'SELECT'), true)
"""
_MAY_FORGET = """
SELECT coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure($1::text), 'EXECUTE'), false)
"""


def change_table_end(connection: Any) -> Position:
    """The present snapshot: everything that is visible now."""
    return View.of(connection.execute(VIEW).fetchone()).place().position()


class ChangeTableCatalog(PostgresCatalog):
    """Implements ``SourceCatalog`` beside change tables."""

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """See ``SourceCatalog.preflight``."""
        return self._with_connection(
            "preflight of the source failed",
            lambda connection: _findings(self._source, psycopg_query(connection), tables),
        )

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        """Nothing: triggers are made by the tables' owner."""

    def adopt(self, tables: Sequence[TableId]) -> None:
        """Nothing: triggers are made by the tables' owner."""

    def position(self) -> Position:
        """See ``SourceCatalog.position``: the present snapshot."""
        return self._with_connection(
            "the source's snapshot can't be read",
            change_table_end,
        )

    def script(self, tables: Sequence[str]) -> str:
        """The SQL that makes change tables and triggers (see ``layout.script``). Raises SourceError."""

        def make(connection: object) -> str:
            query = psycopg_query(connection)
            found = [reflect(query, table_id(self._source, name)) for name in tables]
            missing = [name for name, table in zip(tables, found, strict=True) if table is None]
            if missing:
                raise SourceError(
                    f"the source has no such table: {', '.join(missing)}",
                    where=self._source.server.address,
                    remedy="correct the names in the mapping, or source.schema",
                )
            present = [table for table in found if table is not None]
            check_names([table.schema.id for table in present])
            bodies: dict[str, str] = {}
            if query(_ROLE, [SCHEMA])[0][1] and query(_MAY_USE, [SCHEMA])[0][0]:
                bodies = dict(query(_BODIES, [SCHEMA]))
                present = [table for table in present if list(capture_findings(query, table))]
            return script(present, self._source.server.user, self._source.forget_changes, bodies)

        return self._with_connection("the source's tables can't be read", make)


def _findings(source: PostgresSource, query: Query, tables: Sequence[str]) -> list[Finding]:
    found = list(version(dict(query(SETTINGS, []))))
    if query(RECOVERY, [])[0][0]:
        found.append(standby(source))
    role, there = query(_ROLE, [SCHEMA])[0]
    if not there:
        found.append(Finding("change_tables", SCHEMA, "there are no change tables yet", REMEDY))
    elif not query(_MAY_USE, [SCHEMA])[0][0]:
        remedy = f"GRANT USAGE ON SCHEMA {SCHEMA} TO {identifier(role)};"
        found.append(Finding("change_grant", SCHEMA, f"role {role!r} may not use schema {SCHEMA!r}", remedy))
        there = False
    if there:
        found += _format(query)
        found += _grants(source, query, role)
    for name in tables:
        table = table_id(source, name)
        found += table_findings(source, query, table, role)
        reflected = reflect(query, table)
        if reflected is not None and reflected.kind in ("r", "p") and reflected.persistence == "p" and there:
            found += capture_findings(query, reflected)
            found += _readable(query, reflected, role)
    named = [table_id(source, name) for name in tables]
    found += text_column_findings(source, query, named)
    found += stale_orders(query, ("$1", "$2"), named)
    return found


def _format(query: Query) -> Iterator[Finding]:
    ((comment,),) = query("SELECT obj_description(to_regnamespace($1)::oid, 'pg_namespace')", [SCHEMA])
    number = str(comment or "").removeprefix(COMMENT)
    if comment and number.isdecimal() and int(number) > FORMAT:
        yield Finding(
            "change_tables",
            SCHEMA,
            f"the change tables have format {number}, this version knows formats up to {FORMAT}",
            NEWER,
        )


def _grants(source: PostgresSource, query: Query, role: str) -> Iterator[Finding]:
    if not query(_MAY_READ, [f"{SCHEMA}.forgotten"])[0][0]:
        remedy = f"GRANT SELECT ON {SCHEMA}.forgotten TO {identifier(role)};"
        yield Finding("change_grant", SCHEMA, f"role {role!r} may not read {SCHEMA}.forgotten", remedy)
    if source.forget_changes and not query(_MAY_FORGET, [FORGET])[0][0]:
        remedy = (
            f"GRANT EXECUTE ON FUNCTION {FORGET} TO {identifier(role)}; or set source.forget_changes to false"
        )
        yield Finding("change_grant", SCHEMA, f"role {role!r} may not delete captured changes", remedy)


def _readable(query: Query, table: ReflectedTable, role: str) -> Iterator[Finding]:
    name = quoted(change_table(table.schema.id))
    if not query(_MAY_READ, [name])[0][0]:
        remedy = f"GRANT SELECT ON {name} TO {identifier(role)};"
        yield Finding("change_grant", str(table.schema.id), f"role {role!r} may not read {name}", remedy)
