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
