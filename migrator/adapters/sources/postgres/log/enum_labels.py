"""Labels of the enums that captured columns have, themselves or within. A renamed one differs in all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.postgres.reflection import LOGGED, Query
from migrator.model.table import TableId

# A label that is added gets a number of its own; making room for it may move others (their enumsortorder).
_LABELS = f"""
WITH RECURSIVE made (schema, name, attname, oid) AS (
  SELECT captured.schema, captured.name, a.attname::text, a.atttypid
  FROM unnest($1::text[], $2::text[]) AS captured (schema, name)
  JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND {LOGGED}
  UNION
  SELECT m.schema, m.name, m.attname, p.oid
  FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid CROSS JOIN LATERAL (
    VALUES (t.typelem), (t.typbasetype)
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
  ) AS p(oid) WHERE p.oid <> 0
)
SELECT m.schema, m.name, e.oid::int8, e.enumtypid::pg_catalog.regtype::text, e.enumlabel::text,
       e.enumsortorder::float8, e.xmin::text, m.attname
FROM made m JOIN pg_catalog.pg_enum e ON e.enumtypid = m.oid
"""


@dataclass(frozen=True, slots=True)
class EnumLabel:
    """A label of an enum that a column has, itself or within."""

    type: str
    text: str
    order: float
    version: str

    def became(self, later: EnumLabel) -> str:
        """Tells what was done to it, if it was renamed."""
        if later.text != self.text:
            return f"{self.text!r} of {self.type} was renamed to {later.text!r}"
        if later.version != self.version and later.order == self.order:
            return f"{self.text!r} of {self.type} was renamed, and renamed back"
        return ""


def found_labels(
    query: Query, tables: Sequence[TableId], needs: Callable[[TableId, str], bool]
) -> tuple[dict[TableId, dict[int, EnumLabel]], set[tuple[TableId, int]]]:
    """The labels of each table by their number, and those that a needed column has.

    ``needs``: tells whether a mapping needs a table's column of some name.
    """
    captured = [[table_id.schema for table_id in tables], [table_id.name for table_id in tables]]
    found: dict[TableId, dict[int, EnumLabel]] = {table: {} for table in tables}
    needed: set[tuple[TableId, int]] = set()
    for schema, name, oid, type_name, text, order, version, column in query(_LABELS, captured):
        table = TableId(schema, name)
        found[table][oid] = EnumLabel(type_name, text, order, version)
        if needs(table, column):
            needed.add((table, oid))
    return found, needed


def noted_labels(labels: Mapping[int, EnumLabel]) -> list[list[Any]]:
    """Labels of a table by their number, to be noted."""
    return [
        [oid, label.type, label.text, label.order, label.version] for oid, label in sorted(labels.items())
    ]


def labels_of(noted: Sequence[Sequence[Any]]) -> dict[int, EnumLabel]:
    """Inverse of ``noted_labels``."""
    return {oid: EnumLabel(*label) for oid, *label in noted}
