"""Target tables as pg_catalog describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, LiteralString

import psycopg

from migrator.adapters.targets.postgres.refusal import explained, not_reached
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Equality, ForeignKey, Storage, Structure
from migrator.adapters.targets.shared.refused import ConnectionLost, refused_query
from migrator.connections.postgres.constraints import ENFORCED
from migrator.connections.postgres.refusal import refusal
from migrator.connections.postgres.session import connect
from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable

SPARK_TYPES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
"""Spark SQL type by PostgreSQL type; numeric is computed, everything else is ``string``."""

_EXACT = frozenset(
    {
        "bool",
        "int2",
        "int4",
        "int8",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "uuid",
        "text",
        "varchar",
        "name",
        "enum",
    }
)
_MODIFIER_HEAD = 4

# search_path is empty, so format_type and regclass qualify every name that isn't pg_catalog's.
_COLUMNS: LiteralString = """
WITH RECURSIVE base AS (
    SELECT a.attrelid, a.attnum, a.atttypid AS oid, a.atttypmod AS modifier
    FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = ANY(%(tables)s) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attrelid, b.attnum, t.typbasetype, CASE WHEN b.modifier >= 0 THEN b.modifier ELSE t.typtypmod END
    FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid AND t.typtype = 'd'
), parts AS (
    SELECT DISTINCT b.oid AS root, b.oid, -1 AS modifier FROM base b
    UNION
    SELECT p.root, n.oid, n.modifier
    FROM parts p JOIN pg_catalog.pg_type t ON t.oid = p.oid
    CROSS JOIN LATERAL (
        SELECT t.typbasetype AS oid, t.typtypmod AS modifier WHERE t.typtype = 'd'
        UNION ALL SELECT t.typelem, -1 WHERE t.typcategory = 'A'
        UNION ALL SELECT r.rngsubtype, -1 FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
        UNION ALL SELECT f.atttypid, f.atttypmod FROM pg_catalog.pg_attribute f
            WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
    ) n
)
SELECT a.attrelid::bigint, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN bt.typtype = 'e' THEN 'enum' WHEN bn.nspname = 'pg_catalog' THEN bt.typname ELSE '' END,
       pg_catalog.format_type(b.oid, b.modifier), b.modifier,
       pg_catalog.quote_ident(tn.nspname) || '.' || pg_catalog.quote_ident(t.typname),
       NOT a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '', a.attidentity = 'a',
       pg_catalog.format_type(b.oid, -1), t.typtype = 'd',
       EXISTS (SELECT FROM parts WHERE parts.root = b.oid AND parts.modifier >= 0)
FROM pg_catalog.pg_attribute a
JOIN base b ON b.attrelid = a.attrelid AND b.attnum = a.attnum
JOIN pg_catalog.pg_type bt ON bt.oid = b.oid AND bt.typtype <> 'd'
JOIN pg_catalog.pg_namespace bn ON bn.oid = bt.typnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
ORDER BY a.attrelid, a.attnum
"""

# A key WITHOUT OVERLAPS isn't one to merge by: its index tells what overlaps, and ON CONFLICT doesn't take it.
_KEYS: LiteralString = """
SELECT DISTINCT ON (i.indrelid) i.indrelid::bigint,
       ARRAY(SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE k.place <= i.indnkeyatts ORDER BY k.place)::text[],
       i.indexrelid::bigint
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%(tables)s) AND i.indisunique AND i.indimmediate AND i.indisvalid
  AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL
  AND NOT EXISTS (
      SELECT 1 FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
      JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE k.place <= i.indnkeyatts AND NOT a.attnotnull)
ORDER BY i.indrelid, i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, c.relname
"""

# How the columns of an index compare: the equality of their operator class, and the index's collation.
_EQUALITIES: LiteralString = """
SELECT i.indexrelid::bigint, a.attname, pg_catalog.quote_ident(n.nspname) || '.' || o.oprname,
       CASE WHEN c.oid IS NULL THEN ''
            ELSE pg_catalog.quote_ident(cn.nspname) || '.' || pg_catalog.quote_ident(c.collname) END,
       COALESCE(c.collisdeterministic, true) AND n.nspname = 'pg_catalog'
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL ROWS FROM (
    unnest(i.indkey::int2[]), unnest(i.indclass::oid[]), unnest(i.indcollation::oid[])
) WITH ORDINALITY k(attnum, opclass, collated, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
JOIN pg_catalog.pg_opclass p ON p.oid = k.opclass
JOIN pg_catalog.pg_amop m ON m.amopfamily = p.opcfamily AND m.amoplefttype = p.opcintype
    AND m.amoprighttype = p.opcintype AND m.amopstrategy = 3
JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
LEFT JOIN pg_catalog.pg_collation c ON c.oid = k.collated
LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = c.collnamespace
WHERE i.indexrelid = ANY(%(indexes)s) AND k.place <= i.indnkeyatts
"""

# Columns that uniqueness beside the key depends on, those of expressions and predicates included.
_EXCLUSIVE: LiteralString = """
SELECT DISTINCT i.indrelid::bigint, a.attname, i.indexrelid::bigint
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE i.indrelid = ANY(%(tables)s) AND (i.indisunique OR i.indisexclusion)
  AND (a.attnum = ANY(i.indkey::int2[]) OR EXISTS (
      SELECT 1 FROM pg_catalog.pg_depend d
      WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = i.indexrelid
        AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid =
        a.attnum))
"""

_FOREIGN_KEYS: LiteralString = f"""
SELECT c.conrelid::bigint, c.confrelid::bigint, c.conname, cn.nspname, cr.relname, pn.nspname, pr.relname,
       ARRAY(SELECT a.attname FROM unnest(c.conkey) WITH ORDINALITY k(attnum, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
             ORDER BY place)::text[],
       ARRAY(SELECT a.attname FROM unnest(c.confkey) WITH ORDINALITY k(attnum, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum
             ORDER BY place)::text[],
       c.confdeltype::text, c.confmatchtype = 'f', c.condeferrable,
       ARRAY(SELECT pg_catalog.quote_ident(n.nspname) || '.' || o.oprname
             FROM unnest(c.conpfeqop) WITH ORDINALITY k(operator, place)
             JOIN pg_catalog.pg_operator o ON o.oid = k.operator
             JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace ORDER BY place)::text[],
       ARRAY(SELECT CASE WHEN l.oid IS NULL THEN ''
                         ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(l.collname) END
             FROM unnest(c.confkey) WITH ORDINALITY k(attnum, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum
             LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
             LEFT JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace ORDER BY place)::text[]
FROM pg_catalog.pg_constraint c
JOIN pg_catalog.pg_class cr ON cr.oid = c.conrelid JOIN pg_catalog.pg_namespace cn ON cn.oid = cr.relnamespace
JOIN pg_catalog.pg_class pr ON pr.oid = c.confrelid JOIN pg_catalog.pg_namespace pn ON pn.oid = pr.relnamespace
WHERE c.contype = 'f' AND c.conparentid = 0 AND (c.conrelid = ANY(%(tables)s) OR c.confrelid = ANY(%(tables)s))
  AND {ENFORCED}
ORDER BY c.conname
"""

_DEFERRABLE: LiteralString = """
SELECT DISTINCT conrelid::bigint FROM pg_catalog.pg_constraint WHERE conrelid = ANY(%(tables)s) AND condeferrable
UNION
SELECT DISTINCT confrelid::bigint FROM pg_catalog.pg_constraint WHERE confrelid = ANY(%(tables)s) AND condeferrable
"""

_TABLES: LiteralString = """
SELECT c.oid::bigint, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(names)s) AND c.relkind IN ('r', 'p')
"""


@contextmanager
def catalog(settings: PostgresTarget) -> Iterator[psycopg.Connection[Any]]:
    """A short session for catalog queries, with an empty search_path.

    Raises ``ConnectionFailed``, also when the connection is lost, and ``TargetError``.
    """
    try:
        with connect(settings.conninfo(), settings.login(), settings.pins()) as connection:
            yield connection
    except psycopg.Error as error:
        found = explained(error)
        if isinstance(found, ConnectionLost):
            raise not_reached(settings, str(error), refusal(error)) from None
        remedy = "grant the migration's role what is missing (docs/how-to/grants-postgresql.md)"
        raise refused_query(settings.server.address, found, remedy) from None


def reflect(
    connection: psycopg.Connection[Any], schema: str, names: Sequence[str]
) -> dict[TableId, Structure]:
    """Structures of the named tables that exist, in the order of ``names``."""
    found = dict(connection.execute(_TABLES, {"schema": schema, "names": list(names)}).fetchall())
    oids = {name: oid for oid, name in found.items()}
    parameters = {"tables": list(found)}
    columns: dict[int, list[Storage]] = {oid: [] for oid in found}
    for row in connection.execute(_COLUMNS, parameters):
        columns[row[0]].append(_storage(row[1:]))
    keys = {oid: (tuple(key), index) for oid, key, index in connection.execute(_KEYS, parameters)}
    equalities: dict[tuple[int, str], Equality] = {
        (index, name): Equality(f"OPERATOR({operator})", collation, exact)
        for index, name, operator, collation, exact in connection.execute(
            _EQUALITIES, {"indexes": [index for _, index in keys.values()]}
        )
    }
    for oid, (_, index) in keys.items():
        columns[oid] = [
            _compared(storage, equalities.get((index, storage.column.name))) for storage in columns[oid]
        ]
    exclusive: dict[int, set[str]] = {oid: set() for oid in found}
    for oid, column, index in connection.execute(_EXCLUSIVE, parameters):
        if oid not in keys or index != keys[oid][1]:
            exclusive[oid].add(column)
    foreign_keys = [
        (row[0], row[1], _foreign_key(row)) for row in connection.execute(_FOREIGN_KEYS, parameters)
    ]
    deferrable = {row[0] for row in connection.execute(_DEFERRABLE, parameters)}
    structures = {}
    for name in dict.fromkeys(names):
        if name not in oids:
            continue
        oid, table = oids[name], TableId(schema, name)
        outgoing = tuple(key for child, _, key in foreign_keys if child == oid)
        structures[table] = Structure(
            table=TargetTable(
                id=table,
                columns=tuple(storage.column for storage in columns[oid]),
                key=keys[oid][0] if oid in keys else (),
                references=tuple(dict.fromkeys(key.parent for key in outgoing)),
            ),
            storage=tuple(columns[oid]),
            outgoing=outgoing,
            incoming=tuple(key for _, parent, key in foreign_keys if parent == oid),
            exclusive=frozenset(exclusive[oid]),
            deferrable=oid in deferrable,
        )
    return structures


def _storage(row: Sequence[Any]) -> Storage:
    (
        name,
        native,
        base,
        declared,
        modifier,
        cast,
        nullable,
        default,
        generated,
        always,
        *more,
    ) = row
    plain, domain, nested = more
    spark = _decimal(modifier) if base == "numeric" else SPARK_TYPES.get(base, "string")
    column = TargetColumn(
        name=name,
        spark_type=spark,
        native_type=native,
        nullable=nullable,
        has_default=default,
        generated=generated,
    )
    small = base in ("timestamp", "timestamptz") and modifier >= 0
    fixed = base == "numeric" and spark != "string"
    return Storage(
        column=column,
        base=base,
        declared=declared,
        cast=cast,
        precision=modifier if small else 6,
        identity_always=always,
        plain=plain,
        domain=domain,
        nested=nested and not fixed and base not in ("varchar", "bpchar", "numeric"),
    )


def _compared(storage: Storage, equality: Equality | None) -> Storage:
    """A key's column as the key's index compares it; others as they are."""
    if equality is None:
        return storage
    fixed = storage.base == "numeric" and storage.column.spark_type != "string"
    exact = equality.exact and (storage.base in _EXACT or fixed)
    alike = "" if equality.exact else equality.collation or equality.operator
    column = replace(storage.column, collation=alike)
    return replace(storage, column=column, equality=replace(equality, exact=exact))


def _decimal(modifier: int) -> str:
    """Spark's decimal of a numeric's modifier, or string where Spark has none (unbounded, > 38, odd scales)."""
    if modifier < _MODIFIER_HEAD:
        return "string"
    packed = modifier - _MODIFIER_HEAD
    precision, scale = (packed >> 16) & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024
    if precision > 38 or not 0 <= scale <= precision:
        return "string"
    return f"decimal({precision},{scale})"


def _foreign_key(row: Sequence[Any]) -> ForeignKey:
    (
        _,
        _,
        name,
        child_schema,
        child,
        parent_schema,
        parent,
        child_columns,
        parent_columns,
        action,
        full,
        deferrable,
        operators,
        collations,
    ) = row
    return ForeignKey(
        name=name,
        child=TableId(child_schema, child),
        child_columns=tuple(child_columns),
        parent=TableId(parent_schema, parent),
        parent_columns=tuple(parent_columns),
        on_delete=action,
        match_full=full,
        deferrable=deferrable,
        equalities=tuple(
            Equality(f"OPERATOR({operator})", collation)
            for operator, collation in zip(operators, collations, strict=True)
        ),
    )
