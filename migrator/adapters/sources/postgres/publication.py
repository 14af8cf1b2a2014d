"""The publication: exactly the captured tables, all operations, partitioned tables as their roots.

From 18 on with stored generated columns: without them the server would refuse the application's own UPDATE
and DELETE on such a table, as its replica identity is FULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from migrator.adapters.sources.postgres.reflection import Query, psycopg_query
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of, quoted
from migrator.errors import GapError, SourceError
from migrator.model.table import TableId

_FLAGS = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot AND NOT puballtables,
       coalesce(pg_catalog.to_jsonb(p) ->> 'pubgencols', 's') = 's' OR NOT EXISTS (
         SELECT FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.prrelid
         WHERE r.prpubid = p.oid AND a.attgenerated = 's' AND NOT a.attisdropped)
FROM pg_catalog.pg_publication p WHERE pubname = $1
"""
_MEMBERS = """
SELECT n.nspname::text, c.relname::text, r.prattrs IS NULL AND r.prqual IS NULL
FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = $1
"""
_SCHEMAS = """
SELECT 1 FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_namespace s ON s.pnpubid = p.oid
WHERE p.pubname = $1
"""
_NOT_WHOLE = """
WITH RECURSIVE tree (oid) AS (
  SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = $2
  UNION ALL
  SELECT i.inhrelid FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid AND NOT i.inhdetachpending
)
SELECT n.nspname::text, c.relname::text FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relreplident <> 'f' ORDER BY 1, 2
"""
_VERSION = "SELECT pg_catalog.current_setting('server_version_num')::int4"
_OPTIONS: LiteralString = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"
GENERATED: LiteralString = "publish_generated_columns = stored"
_GENERATED_SINCE = 180_000
_LOCK_TIMEOUT = "5s"


def published(query: Query, name: str) -> tuple[bool, bool, set[TableId]] | None:
    """(operations and root publishing right, whole tables only, tables) of a publication; None if there is none.

    Whole are tables with all of their rows and columns, stored generated ones too where the server can
    publish them.
    """
    flags = query(_FLAGS, [name])
    if not flags:
        return None
    members = query(_MEMBERS, [name])
    whole = bool(flags[0][1]) and all(row[2] for row in members) and not query(_SCHEMAS, [name])
    return bool(flags[0][0]), whole, {TableId(schema, table) for schema, table, _ in members}


def is_right(query: Query, name: str, tables: Sequence[TableId]) -> bool:
    """Tells whether the publication exists with exactly these tables, whole, and all operations."""
    return published(query, name) == (True, True, set(tables))


def check_covers(source: PostgresSource, query: Query, tables: Sequence[TableId]) -> None:
    """Raises GapError if the publication leaves out anything of these tables (none: of whatever it has).

    The server says nothing when somebody takes a table or an operation out (18 doesn't even when the whole
    publication is gone): the changes are simply missing from the stream.
    """
    found = published(query, source.slot)
    cause = ""
    if found is None:
        cause = "it doesn't exist"
    elif not found[0] or not found[1]:
        cause = "it doesn't publish all operations of whole tables"
    elif left_out := set(tables) - found[2]:
        cause = f"it doesn't have {', '.join(map(str, sorted(left_out)))}"
    if cause:
        raise changed_publication(source, cause)


def check_marked(source: PostgresSource, query: Query, tables: Sequence[TableId]) -> None:
    """Raises SourceError if the publication lacks tables that only mark places in the log, such as the watermark's.

    Nothing is lost without them: a chunk whose marks didn't come is read again.
    """
    found = published(query, source.slot)
    if found is not None and (missing := set(tables) - found[2]):
        listed = ", ".join(quoted(table) for table in sorted(missing))
        raise SourceError(
            f"publication {source.slot!r} doesn't have what source.placement = {source.placement!r} writes",
            where=source.server.address,
            cause=f"{', '.join(map(str, sorted(missing)))} isn't in it; was the placement edited meanwhile?",
            remedy=f'as its owner: ALTER PUBLICATION "{source.slot}" ADD TABLE {listed}; then start again.'
            " Or set source.placement back",
        )


def join_publication(source: PostgresSource, connection: Any, tables: Sequence[TableId]) -> None:
    """Adds those of the tables that it lacks and whose old rows are logged whole; waits for no lock for long."""
    query = psycopg_query(connection)
    found = published(query, source.slot)
    if found is None:
        return
    fit = [t for t in tables if t not in found[2] and not query(_NOT_WHOLE, [t.schema, t.name])]
    if fit:
        connection.execute(f"SET lock_timeout = '{_LOCK_TIMEOUT}'")
        statement = f"ALTER PUBLICATION {name_of(source.slot)} ADD TABLE {', '.join(map(quoted, fit))}"
        try:
            connection.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SourceError(
                f"{', '.join(map(str, fit))} can't join the publication",
                where=source.server.address,
                cause=str(error),
                remedy=f"as the owner of publication and tables: {statement}; then start again",
            ) from error


def missing_for(source: PostgresSource, query: Query, table: TableId) -> list[str]:
    """The statements without which changes of a table aren't captured, or by half; none if it is as it must be."""
    found = published(query, source.slot)
    joins = (
        []
        if found is None or table in found[2]
        else [f'ALTER PUBLICATION "{source.slot}" ADD TABLE {quoted(table)}']
    )
    rows = query(_NOT_WHOLE, [table.schema, table.name])
    return joins + [f"ALTER TABLE {quoted(TableId(*row))} REPLICA IDENTITY FULL" for row in rows]


def changed_publication(source: PostgresSource, cause: str) -> GapError:
    """The error for a publication that was changed or dropped while a migration needs it."""
    return GapError(
        f"publication {source.slot!r} doesn't cover the captured tables: changes may be missing from the stream",
        where=source.server.address,
        cause=cause,
        remedy="start the migration anew (docs/how-to/start-anew.md); nobody but the migration may change"
        " its publication",
    )


def create_statement(name: str, tables: Sequence[TableId], options: str = _OPTIONS) -> str:
    """The statement that makes the publication, as preflight prints it with the server's ``options``."""
    listed = ", ".join(quoted(table) for table in sorted(tables))
    return f'CREATE PUBLICATION "{name}" FOR TABLE {listed} WITH ({options});'


def mending_statement(query: Query, name: str, tables: Sequence[TableId]) -> str:
    """Returns the statements, as preflight prints them, that make the publication what it has to be."""
    found, options = published(query, name), options_of(query)
    if found is None:
        return create_statement(name, tables, options)
    if not (found[0] and found[1]):
        return f'DROP PUBLICATION "{name}"; {create_statement(name, tables, options)}'
    changes = (("ADD", set(tables) - found[2]), ("DROP", found[2] - set(tables)))
    return " ".join(
        f'ALTER PUBLICATION "{name}" {change} TABLE {", ".join(quoted(table) for table in sorted(those))};'
        for change, those in changes
        if those
    )


def options_of(query: Query) -> LiteralString:
    """The publication's options on this server."""
    return _OPTIONS + (", " + GENERATED if query(_VERSION, [])[0][0] >= _GENERATED_SINCE else "")


def publish(source: PostgresSource, connection: Any, tables: Sequence[TableId]) -> None:
    """Makes or corrects the publication; does nothing if it is right already (a DBA may have made it)."""
    query = psycopg_query(connection)
    if is_right(query, source.slot, tables):
        return
    if query("SELECT pg_catalog.pg_is_in_recovery()", [])[0][0]:
        raise SourceError(
            f"publication {source.slot!r} can't be made on a standby",
            where=source.server.address,
            remedy=f"on the primary, as the owner of the tables: {mending_statement(query, source.slot, tables)}",
        )
    name, options = sql.Identifier(source.slot), options_of(query)
    listed = sql.SQL(", ").join(sql.Identifier(table.schema, table.name) for table in sorted(tables))
    if published(query, source.slot) is None:
        statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH ({})")
        connection.execute(statement.format(name, listed, sql.SQL(options)))
        return
    with connection.transaction():
        connection.execute(sql.SQL("ALTER PUBLICATION {} SET TABLE {}").format(name, listed))
        connection.execute(sql.SQL("ALTER PUBLICATION {} SET ({})").format(name, sql.SQL(options)))
