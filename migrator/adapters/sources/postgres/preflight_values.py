"""Preflight of values: those that a column's logical type can't hold, and columns that travel as text for them.

``numeric(p,s)`` is a decimal, which has no NaN; ``timestamp`` and ``timestamptz`` are microseconds, which end
in the year 294247, some decades before PostgreSQL's own. No large table is scanned for such values: where an
index leads with the column it is asked, a small table is read, and of others the statistics are looked at
that ANALYZE has made. What is not found so stops the run by name when it is read, with nothing lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrator.adapters.sources.postgres.reflection import (
    Query,
    ReflectedColumn,
    ReflectedTable,
    reflect,
)
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of, quoted
from migrator.model.finding import Finding
from migrator.model.table import TableId

_SMALL_BYTES = 32 << 20
_LAST = "294247-01-10 04:00:54.775807"
"""The moment 2^63 - 1 microseconds after 1970."""
_FACTS = """
SELECT coalesce((SELECT sum(pg_catalog.pg_relation_size(t.relid)) FROM pg_catalog.pg_partition_tree(c.oid) t),
                pg_catalog.pg_relation_size(c.oid))::int8,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
             JOIN pg_catalog.pg_am m ON m.oid = x.relam AND m.amname = 'btree'
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
             WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL),
       pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c WHERE c.oid = $1::int8::oid
"""
_SAMPLED = """
SELECT DISTINCT s.attname::text, v.value FROM pg_catalog.pg_stats s
JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
CROSS JOIN LATERAL (SELECT pg_catalog.unnest(s.most_common_vals::text::text[])
                    UNION ALL SELECT pg_catalog.unnest(s.histogram_bounds::text::text[])) AS v(value)
WHERE s.attname = ANY($2::text[])
  AND c.oid IN (SELECT $1::int8::oid
                UNION SELECT t.relid::oid FROM pg_catalog.pg_partition_tree($1::int8::oid::regclass) t)
"""


def text_column_findings(
    source: PostgresSource, query: Query, tables: Sequence[TableId]
) -> Iterator[Finding]:
    """Lists what ``text_columns`` names that isn't there, or needs no such thing."""
    known = {table.name: table for table in tables}
    for name, columns in sorted(source.text_columns.items()):
        if name not in known:
            problem = "source.text_columns names this table, and no mapping reads it"
            yield Finding("text_columns", name, problem, "correct the name, or take it out")
            continue
        reflected = reflect(query, known[name], source.choices(known[name]))
        kinds = (
            {reflected_column.column.name: reflected_column.holds for reflected_column in reflected.columns}
            if reflected
            else {}
        )
        for column in sorted(columns) if reflected else ():
            if column not in kinds:
                problem, remedy = (
                    "source.text_columns names this column, and there is none",
                    "correct the name",
                )
            elif not _lacks(kinds[column]):
                problem = (
                    f"source.text_columns names this column, and {kinds[column]} holds all of its values"
                )
                remedy = "take it out: numeric(p,s), timestamp and timestamptz may travel as text"
            else:
                continue
            yield Finding("text_columns", f"{name}.{column}", problem, remedy)


def value_findings(query: Query, reflected: ReflectedTable) -> Iterator[Finding]:
    """Columns with values that their logical type can't hold, as far as that is told without a scan."""
    columns = [column for column in reflected.columns if _lacks(column.column.type)]
    size, indexed, readable = query(_FACTS, [reflected.oid])[0]
    if not columns or not readable:
        return
    looked = [column for column in columns if size <= _SMALL_BYTES or column.column.name in indexed]
    found = _looked_up(query, reflected, looked)
    rest = [column for column in columns if column not in looked]
    if rest:
        found |= _sampled(query, reflected, rest)
    for column in columns:
        if column.column.name in found:
            yield _finding(reflected, column)


def _looked_up(query: Query, reflected: ReflectedTable, columns: Sequence[ReflectedColumn]) -> set[str]:
    if not columns:
        return set()
    table = quoted(reflected.schema.id)
    exists = (f"EXISTS (SELECT FROM {table} WHERE {_unheld(column)})" for column in columns)
    answers = query(f"SELECT {', '.join(exists)}", [])[0]
    return {column.column.name for column, yes in zip(columns, answers, strict=True) if yes}


def _unheld(column: ReflectedColumn) -> str:
    name, kind = name_of(column.column.name), column.column.type
    if column.column.decimal() is not None:
        return f"{name} = 'NaN'::pg_catalog.numeric"
    return f"{name} > '{_LAST}+00'::pg_catalog.{kind} AND {name} < 'infinity'::pg_catalog.{kind}"


def _sampled(query: Query, reflected: ReflectedTable, columns: Sequence[ReflectedColumn]) -> set[str]:
    kinds = {column.column.name: column for column in columns}
    return {
        name
        for name, value in query(_SAMPLED, [reflected.oid, list(kinds)])
        if (value == "NaN" if kinds[name].column.decimal() is not None else _late(value))
    }


def _late(value: str) -> bool:
    """Tells whether a moment, as the server prints it in UTC, is later than the last one held. Six digits of a year
    are."""
    return (
        value[:1].isdigit()
        and len(value.partition("-")[0]) >= 6
        and not value.endswith("BC")
        and value > _LAST
    )


def _finding(reflected: ReflectedTable, column: ReflectedColumn) -> Finding:
    table, name = reflected.schema.id, column.column.name
    what = "NaN" if column.column.decimal() is not None else f"moments after {_LAST}"
    change = f"UPDATE {quoted(table)} SET {name_of(name)} = ... WHERE {_unheld(column)}; or "
    text = f"[source] text_columns = {{ {_toml(table.name)} = [{_quoted_toml(name)}] }}"
    return Finding(
        "column_values",
        f"{table}.{name}",
        f"it has {what}, which {column.column.type} can't hold",
        f"{'' if column.generated else change}have the column travel as text: {text}",
    )


def _toml(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _quoted_toml(name)


def _quoted_toml(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lacks(logical: str) -> bool:
    """Tells whether PostgreSQL has values of a type that the logical type doesn't."""
    return logical.startswith("decimal(") or logical in ("timestamp", "timestamptz")
