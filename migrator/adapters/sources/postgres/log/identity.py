"""The table that a name stands for: its number in the server's catalog (``pg_class.oid``).

A rename, another schema, a renamed schema or database, TRUNCATE, VACUUM FULL and every rewrite keep it; a
table that is made anew gets another. The log tells relations by it, too. So what was dumped is known by its
number, and the log is read of that number, whatever the table is called in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrator.adapters.sources.postgres.reflection import Query
from migrator.adapters.sources.postgres.whole_images import name_of, quoted
from migrator.adapters.sources.replaced import all_rows_read
from migrator.errors import ReplacedError, SchemaError
from migrator.model.table import TableId

_NUMBERS = """
SELECT captured.schema, captured.name, c.oid::int8
FROM unnest($1::text[], $2::text[]) AS captured (schema, name)
JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name AND c.relkind IN ('r', 'p')
"""
_CALLED = """
SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::int8::oid
"""
_SCHEMA = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1"

Preparing = Callable[[Query, TableId], Sequence[str]]
"""A function that finds the statements to run before changes of a table are captured; none if it is as it must be."""


def table_numbers(query: Query, tables: Sequence[TableId]) -> dict[TableId, int]:
    """The numbers of these tables; without those that are gone."""
    rows = query(_NUMBERS, [[table.schema for table in tables], [table.name for table in tables]])
    return {TableId(schema, name): number for schema, name, number in rows}


def replaced(query: Query, table: TableId, dumped: int, found: int, needed: Sequence[str]) -> ReplacedError:
    """The named error for another table under the name of one that was dumped; ``needed``: see ``Preparing``."""
    return ReplacedError(
        f"table {table} was replaced by another table of its name",
        [table],
        cause=f"table number {dumped} was dumped, and {_became(query, dumped)}; the name now leads to number {found}",
        remedy=f"put the other one back; or, to go on with this one, {all_rows_read([table], needed)}",
    )


class NameGone(SchemaError):
    """A captured name leads to no table. In the middle of a swap by two statements that lasts a moment."""


def gone(query: Query, table: TableId, dumped: int) -> NameGone:
    """The named error for a name that leads to no table any more."""
    called = _called(query, dumped)
    if called is None:
        remedy = (
            "make a table of that name (the next start says how its rows are read), or start the migration anew"
            " (docs/how-to/start-anew.md)"
        )
    else:
        back = "; ".join(_back(query, called, table))
        remedy = f"{back}; then start again: what was written to it meanwhile is in its log"
    return NameGone(
        f"there is no table {table} any more",
        where=str(table),
        cause=f"table number {dumped} was dumped, and {_became(query, dumped)}",
        remedy=remedy,
    )


def _called(query: Query, number: int) -> TableId | None:
    rows = query(_CALLED, [number])
    return TableId(*rows[0]) if rows else None


def _became(query: Query, number: int) -> str:
    called = _called(query, number)
    return "it was dropped" if called is None else f"it is called {called} now"


def _back(query: Query, called: TableId, table: TableId) -> list[str]:
    """The statements that give it its name again."""
    if called.schema != table.schema and not query(_SCHEMA, [table.schema]):
        renamed = f"ALTER SCHEMA {name_of(called.schema)} RENAME TO {name_of(table.schema)}"
        return [renamed, *_back(query, TableId(table.schema, called.name), table)]
    statements = []
    if called.name != table.name:
        statements.append(f"ALTER TABLE {quoted(called)} RENAME TO {name_of(table.name)}")
    if called.schema != table.schema:
        moved = quoted(TableId(called.schema, table.name))
        statements.append(f"ALTER TABLE {moved} SET SCHEMA {name_of(table.schema)}")
    return statements
