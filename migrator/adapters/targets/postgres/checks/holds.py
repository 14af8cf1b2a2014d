"""Rules for the values that the columns of a PostgreSQL target take (see ``model.fit``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, LiteralString

import psycopg

from migrator.adapters.targets.postgres.rows.merge import qualified
from migrator.adapters.targets.postgres.structure import Storage, Structure
from migrator.adapters.targets.shared.conditions import rules_of
from migrator.model.fit import Limit, Rule

_LABELS: LiteralString = (
    "SELECT enumlabel::text FROM pg_catalog.pg_enum"
    " WHERE enumtypid = %s::text::regtype ORDER BY enumsortorder"
)
_CONDITIONS: LiteralString = """
SELECT a.attname::text, pg_catalog.pg_get_constraintdef(c.oid), ''
FROM pg_catalog.pg_constraint c
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
WHERE c.contype = 'c' AND pg_catalog.cardinality(c.conkey) = 1 AND c.conrelid = %(table)s::text::regclass
UNION ALL
SELECT a.attname::text, pg_catalog.pg_get_constraintdef(c.oid), 'VALUE'
FROM pg_catalog.pg_attribute a, LATERAL (
    WITH RECURSIVE up AS (
        SELECT a.atttypid AS domain
        UNION ALL
        SELECT t.typbasetype FROM pg_catalog.pg_type t JOIN up ON t.oid = up.domain WHERE t.typbasetype <> 0
    ) SELECT domain FROM up) up
JOIN pg_catalog.pg_constraint c ON c.contypid = up.domain AND c.contype = 'c'
WHERE a.attrelid = %(table)s::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
"""Conditions of single columns and of their domains, and by what name they call the value."""
_INTEGERS = {"int2": 16, "int4": 32, "int8": 64}
_TEXTS = frozenset({"text", "varchar", "bpchar", "name", "enum", "json", "jsonb", "xml", "citext", ""})
_SECONDS = frozenset({"timetz", "interval", "timestamp", "timestamptz"})
_SIZE = re.compile(r"\((\d+)(?:,(\d+))?\)")
_NAME_OCTETS = 63
_MOST_BITS = 83_886_080
_FLOAT_DIGITS = {"float4": 6, "float8": 15}


def holds(connection: psycopg.Connection[Any], structure: Structure) -> Mapping[str, Sequence[Rule]]:
    """Returns the rules of each column by its name."""
    found = {one.column.name: [*_rules(connection, one)] for one in structure.storage}
    place = {"table": qualified(structure.table.id)}
    for column, condition, name in connection.execute(_CONDITIONS, place).fetchall():
        if column in found:
            found[column] += rules_of(condition, name or column)
    return found


def _rules(connection: psycopg.Connection[Any], storage: Storage) -> Iterator[Rule]:
    base, size = storage.base, _SIZE.search(storage.declared)
    if not storage.column.nullable:
        yield Rule(Limit.NO_NULL)
    if base in _TEXTS:
        yield Rule(Limit.NO_ZERO)
    if base in ("varchar", "bpchar") and size is not None:
        yield Rule(Limit.CHARACTERS, (int(size[1]),))
    if base in ("bit", "varbit"):
        most = int(size[1]) if size is not None else _MOST_BITS
        yield Rule(Limit.BITS, (most if base == "bit" else 0, most))
    if base in _FLOAT_DIGITS:
        yield Rule(Limit.DIGITS, (_FLOAT_DIGITS[base],))
    if base in ("name", "char"):
        yield Rule(Limit.OCTETS, (_NAME_OCTETS if base == "name" else 1,))
    if base in _INTEGERS:
        most = 2 ** (_INTEGERS[base] - 1)
        yield Rule(Limit.RANGE, (-most, most - 1))
        yield Rule(Limit.SCALE, (0,))
    if base == "numeric" and size is not None:
        precision, scale = int(size[1]), int(size[2] or 0)
        greatest = (Decimal(10) ** precision - 1).scaleb(-scale)
        yield Rule(Limit.RANGE, (-greatest, greatest))
        yield Rule(Limit.SCALE, (scale,))
    if base in _SECONDS and size is not None:
        yield Rule(Limit.SECONDS, (int(size[1]),))
    if base == "enum":
        labels = connection.execute(_LABELS, [storage.declared]).fetchall()
        yield Rule(Limit.MEMBERS, tuple(label for (label,) in labels))
    if base == "time":
        yield Rule(Limit.TIME, (int(size[1]) if size else 6,))
    if base == "uuid":
        yield Rule(Limit.UUID)
    if base in ("json", "jsonb"):
        yield Rule(Limit.JSON)
