"""Reads a table's structure from pg_catalog.

Left out of the row schema: dropped columns, and generated columns, which pgoutput doesn't publish; so the dump
doesn't read them either, and what a mapping needs of them it computes itself. From 18 on our publication has stored
ones.

The key is the primary key, else the narrowest unique index that is immediate, valid, without expressions,
predicate or columns that may have NULL. A deferrable key isn't one: two rows may share it inside a transaction, and
then the log's images can't be told apart by key. Nor is an index that orders by operators which aren't
pg_catalog's: our sessions see no others, and would compare keys in another order than the server sorts them
in, so that chunks would leave keys out. Those of citext and ltree are known: for chunks of such keys they are
seen (``operator_path``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from migrator.adapters.sources.postgres.settings import ColumnChoices
from migrator.adapters.sources.postgres.types import Domains, base_type, logical_type
from migrator.connections.postgres.collations import ORDER_OF
from migrator.connections.postgres.constraints import NOT_NULL
from migrator.errors import SchemaError
from migrator.model.table import NONDETERMINISTIC, Column, TableId, TableSchema

Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs one statement with ``$1`` placeholders; used with psycopg and with ADBC."""
Result = TypeVar("Result")
PLAIN = ColumnChoices()

_TABLE = """
SELECT c.oid::int8, c.relkind::text, c.relpersistence::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
LOGGED = """(a.attgenerated = '' OR
  a.attgenerated = 's' AND pg_catalog.current_setting('server_version_num')::int4 >= 180000)"""
"""A condition for columns that the log can have, as SQL."""
_COLUMNS = f"""
SELECT a.attnum::int4, a.attname::text, a.atttypid::int8, a.atttypmod::int4,
       pg_catalog.format_type(a.atttypid, a.atttypmod), {NOT_NULL}, a.attgenerated <> '',
       {LOGGED},
       coalesce(l.collname::text || CASE WHEN pg_catalog.to_jsonb(l) ->> 'collisdeterministic' = 'false'
                                         THEN ' {NONDETERMINISTIC}' ELSE '' END, ''),
       t.typoutput::pg_catalog.regproc::text,
       CASE WHEN t.typtype <> 'd' AND i.typtype <> 'p' AND i.oid <> t.oid
            THEN '::' || pg_catalog.format_type(i.oid, NULL) ELSE '' END,
       CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_index x
                         WHERE x.indrelid = a.attrelid AND x.indisunique AND a.attnum = ANY(x.indkey))
            THEN {ORDER_OF} ELSE '' END
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_proc f ON f.oid = t.typoutput
JOIN pg_catalog.pg_type i ON i.oid = f.proargtypes[0]
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_NUMBERS = """
SELECT a.attnum::int4 FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::int8::oid AND a.attnum > 0
"""
_KEYS = f"""
SELECT k.place::int4, a.attname::text, {NOT_NULL}, a.attgenerated::text, i.indexrelid::int8
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k(number, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = $1::int8::oid AND i.indisunique AND i.indimmediate AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(i.indclass) AS c(oid) JOIN pg_catalog.pg_opclass o ON o.oid
  = c.oid
                  WHERE o.opcnamespace <> 'pg_catalog'::pg_catalog.regnamespace
                    AND NOT (o.opcdefault AND EXISTS (
                      SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
                      WHERE d.classid = 'pg_catalog.pg_opclass'::pg_catalog.regclass AND d.objid = o.oid
                        AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype = 'e'
                        AND e.extname IN ('citext', 'ltree'))))
ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid, k.place
"""
_OPERATORS = """
SELECT coalesce(pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(n.nspname), ', '), '')
FROM pg_catalog.pg_opclass o JOIN pg_catalog.pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'
JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace AND n.nspname <> 'pg_catalog'
WHERE o.opcdefault AND o.opcintype = ANY($1::int8[]::oid[])
"""
_SHADOWS = """
SELECT o.oid::pg_catalog.regoperator::text FROM pg_catalog.pg_operator o
JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
WHERE pg_catalog.quote_ident(n.nspname) = ANY(pg_catalog.string_to_array($1::text, ', '))
  AND o.oprname IN ('=', '<>', '<', '<=', '>', '>=')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid IN (o.oprleft, o.oprright)
                    AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace)
LIMIT 1
"""
_DOMAINS = "SELECT oid::int8, typbasetype::int8, typtypmod::int4 FROM pg_catalog.pg_type WHERE typtype = 'd'"
_TYPE_NAME = "SELECT pg_catalog.format_type($1::int8::oid, $2::int4)"


@dataclass(frozen=True, slots=True)
class ReflectedColumn:
    """A column with what the adapter needs beyond the model.

    Attributes:
        column: the model's column.
        number: ``attnum``, which tells a column from a later one of the same name.
        base_oid: its type, domains followed.
        output_function: SQL name of its type's output function.
        output_cast: the cast that its argument needs: a type may print by another's function (refcursor).
        base_declared: that type as it would be declared.
        holds: the logical type that its values have, where the column's doesn't say that they travel as text.
        generated: whether the server computes it.
    """

    column: Column
    number: int
    base_oid: int
    output_function: str
    output_cast: str
    base_declared: str
    holds: str
    generated: bool

    def printed(self, expression: str) -> str:
        """The text of a value as the log has it, as SQL. A cast to text isn't always that (inet, char(n), xml)."""
        return f"{self.output_function}({expression}{self.output_cast})::text"


@dataclass(frozen=True, slots=True)
class ReflectedTable:
    """A table as the catalog has it. ``kind`` is ``relkind``, ``persistence`` is ``relpersistence``."""

    oid: int
    kind: str
    persistence: str
    schema: TableSchema
    columns: tuple[ReflectedColumn, ...]


def psycopg_query(connection: Any) -> Query:
    """A query function on a psycopg connection that has the raw cursor factory."""

    def query(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = connection.execute(statement, parameters).fetchall()
        return rows

    return query


def at_one_moment(connection: Any, ask: Callable[[Query], Result]) -> Result:
    """Answers to questions that all see one state of the catalog.

    Why: between two questions a table may be replaced by another, whose columns would then be taken for the first
    one's. After an error the connection is of no use any more.
    """
    plain = psycopg_query(connection)

    def query(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with connection.transaction():  # a savepoint: a look goes on after a lock that it didn't get
            return plain(statement, parameters)

    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    found = ask(query)
    connection.execute("COMMIT")
    return found


def reflect(query: Query, table: TableId, choices: ColumnChoices = PLAIN) -> ReflectedTable | None:
    """The table as it is now (as the query's snapshot shows it), or None. ``schema.key`` is () without a
    key.
    """
    found = query(_TABLE, [table.schema, table.name])
    if not found:
        return None
    oid, kind, persistence = found[0]
    domains = domains_of(query)
    columns, orders = [], {}
    rows = query(_COLUMNS, [oid])
    for (
        number,
        name,
        type_oid,
        modifier,
        declared,
        not_null,
        generated,
        logged,
        collation,
        output,
        cast,
        order,
    ) in rows:
        orders[name] = order
        if generated and not (logged and choices.generated):
            continue
        base, base_modifier = base_type(type_oid, modifier, domains)
        holds = logical_type(base, base_modifier)
        logical = "string" if name in choices.as_text else holds
        column = Column(name, logical, not not_null, declared, collation)
        if base != type_oid:
            ((declared,),) = query(_TYPE_NAME, [base, base_modifier])
        columns.append(ReflectedColumn(column, number, base, output, cast, declared, holds, generated))
    key = choose_key(query(_KEYS, [oid]))
    order = tuple(orders[name] for name in key)
    schema = TableSchema(table, tuple(reflected.column for reflected in columns), key, order=order)
    return ReflectedTable(oid, kind, persistence, schema, tuple(columns))


def other_numbers(query: Query, table: ReflectedTable) -> frozenset[int]:
    """Returns the numbers of columns that a table had or has, without those that were reflected."""
    reflected = {column.number for column in table.columns}
    return frozenset(number for (number,) in query(_NUMBERS, [table.oid])) - reflected


def choose_key(rows: Iterable[tuple[int, str, bool, str, int]]) -> tuple[str, ...]:
    """The first index all of whose columns are not null and not generated, from rows of the keys query."""
    indexes: dict[int, list[str] | None] = {}
    for _, name, not_null, generated, index in rows:
        names = indexes.setdefault(index, [])
        if not not_null or generated:
            indexes[index] = None
        elif names is not None:
            names.append(name)
    return next((tuple(names) for names in indexes.values() if names), ())


def domains_of(query: Query) -> Domains:
    """All domains of the database."""
    return {oid: (base, modifier) for oid, base, modifier in query(_DOMAINS, [])}


def operator_path(query: Query, key: Iterable[ReflectedColumn]) -> str:
    """The schemas, beside pg_catalog, of the operators that compare these columns, as in ``search_path``.

    Raises ``SchemaError`` where an operator that somebody else put there would compare columns of
    pg_catalog's types.
    """
    path = str(query(_OPERATORS, [[column.base_oid for column in key]])[0][0])
    for (found,) in query(_SHADOWS, [path]) if path else ():
        raise SchemaError(
            f"operator {found} would be taken for the server's own where keys are compared",
            where=f"schema {path}",
            cause="those of a key's type (citext, ltree) are in that schema, so operators are looked for in it",
            remedy=f"CREATE SCHEMA IF NOT EXISTS another_schema; ALTER OPERATOR {found} SET SCHEMA another_schema",
        )
    return path


def describe_types(query: Query, types: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    """Returns for each (type OID, modifier): the type as declared, and its logical type."""
    domains = domains_of(query)
    described = []
    for oid, modifier in types:
        ((declared,),) = query(_TYPE_NAME, [oid, modifier])
        described.append((declared, logical_type(*base_type(oid, modifier, domains))))
    return described
