"""Tables that no mapping fills, and that foreign keys tie to those that mappings do: the role must read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg

from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.structure import Structure
from migrator.model.finding import Finding
from migrator.model.table import TableId

_MAY_READ: LiteralString = """
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_PERIODS: LiteralString = """
SELECT c.conname::text, n.nspname::text, r.relname::text FROM pg_catalog.pg_constraint c
JOIN pg_catalog.pg_class r ON r.oid = c.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE c.contype = 'f' AND c.conparentid = 0 AND pg_catalog.to_jsonb(c) ->> 'conperiod' = 'true'
  AND ARRAY[c.conrelid, c.confrelid] && %s::text[]::regclass[]::oid[] ORDER BY 2, 3, 1
"""


def keys_of_periods(
    connection: psycopg.Connection[Any], structures: Mapping[TableId, Structure]
) -> list[Finding]:
    """Finds foreign keys with PERIOD: whether one holds isn't told by comparing a child's value with a parent's."""
    tables = [qualified(table) for table in structures]
    found = connection.execute(_PERIODS, [tables]).fetchall()
    return [
        Finding(
            "foreign_key_period",
            f"{schema}.{table} constraint {name}",
            "a foreign key with PERIOD can't be kept while rows are written: the role turns foreign keys off for"
            " its transactions, and looks for parents by equal values",
            f"ALTER TABLE {qualified(TableId(schema, table))} DROP CONSTRAINT {quoted(name)} until cut-over",
        )
        for name, schema, table in found
    ]


def tied_tables(
    connection: psycopg.Connection[Any], user: str, structures: Mapping[TableId, Structure]
) -> list[Finding]:
    """Finds rights the role lacks to see whether foreign keys hold: it turns them off for its own transactions."""
    findings = []
    ties = {
        other: key
        for one in structures.values()
        for key, other in [
            *((key, key.parent) for key in one.outgoing),
            *((key, key.child) for key in one.incoming),
        ]
        if other not in structures
    }
    for table, key in sorted(ties.items()):
        may_use, may_read = connection.execute(_MAY_READ, [table.schema, table.name]).fetchone() or (
            True,
            True,
        )
        grants = []
        if not may_use:
            grants.append(f"GRANT USAGE ON SCHEMA {quoted(table.schema)} TO {quoted(user)}")
        if not may_read:
            grants.append(f"GRANT SELECT ON {qualified(table)} TO {quoted(user)}")
        if grants:
            problem = (
                f"the role may not read it, and foreign key {key.name} of {key.child} is checked against it"
            )
            findings.append(Finding("grants", str(table), problem, "; ".join(grants)))
    return findings
