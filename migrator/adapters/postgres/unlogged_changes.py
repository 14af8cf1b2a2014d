"""Changes of a captured table that leave nothing in the log: found by looking at the catalog now and then.

- The publication: what is written to a table while it is taken out is missing from the stream.
- Partitions: a table that is attached brings its rows along, one that is detached or dropped takes them away, and no
  row of these is in the log.

A look finds what is different from the first look of this reader. Somebody may have put it back meanwhile, so the
catalog rows' own versions (``xmin``) are compared. Of the time before the first look it can tell what was attached
since the slot stood where it stands, but not what was detached or dropped then. Labels are noted for the next reader:
one that was renamed while nobody looked is found by its first look. It stops until somebody has asked for the table's
rows once more (``run.resume.notes_to_keep`` then leaves the note out): whoever starts it again may not have read why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrator.adapters.postgres.publication import changed_publication, check_covers
from migrator.adapters.postgres.reflection import Query
from migrator.adapters.postgres.settings import PostgresSource
from migrator.errors import SchemaError
from migrator.log_notes import LogNotes
from migrator.model.table import TableId

_MEMBERSHIPS = """
SELECT '', '', p.oid::text || '/' || p.xmin::text FROM pg_catalog.pg_publication p WHERE p.pubname = $1
UNION ALL
SELECT n.nspname::text, c.relname::text, r.oid::text || '/' || r.xmin::text
FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = $1
"""
# A system column's row in pg_attribute is written when a table is made and never again.
_PARTITIONS = """
SELECT n.nspname::text, c.relname::text, t.relid::int8, t.relid::pg_catalog.regclass::text,
       i.xmin::text || '/' || i.inhparent::text,
       i.xmin::text <> a.xmin::text,
       coalesce(pg_catalog.age(i.xmin) <= pg_catalog.age(s.catalog_xmin), false)
FROM unnest($2::text[], $3::text[]) AS captured (schema, name)
JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name
CROSS JOIN LATERAL pg_catalog.pg_partition_tree(c.oid) t
JOIN pg_catalog.pg_inherits i ON i.inhrelid = t.relid
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.relid AND a.attnum = -1
LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = $1
WHERE c.relkind = 'p' AND t.level > 0
"""
# A label that is added gets a number of its own; making room for it may move others (their enumsortorder).
_LABELS = """
WITH RECURSIVE made (schema, name, oid) AS (
  SELECT captured.schema, captured.name, a.atttypid FROM unnest($1::text[], $2::text[]) AS captured (schema, name)
  JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION
  SELECT m.schema, m.name, p.oid FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid CROSS JOIN LATERAL (
    VALUES (t.typelem), (t.typbasetype)
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
  ) AS p(oid) WHERE p.oid <> 0
)
SELECT m.schema, m.name, e.oid::int8, e.enumtypid::pg_catalog.regtype::text, e.enumlabel::text,
       e.enumsortorder::float8, e.xmin::text
FROM made m JOIN pg_catalog.pg_enum e ON e.enumtypid = m.oid
"""


@dataclass(frozen=True, slots=True)
class _Label:
    """A label of an enum that a column has, itself or within."""

    type: str
    text: str
    order: float
    version: str

    def became(self, later: _Label) -> str:
        """What was done to it, if it was renamed."""
        if later.text != self.text:
            return f"{self.text!r} of {self.type} was renamed to {later.text!r}"
        if later.version != self.version and later.order == self.order:
            return f"{self.text!r} of {self.type} was renamed, and renamed back"
        return ""


@dataclass(frozen=True, slots=True)
class _Partition:
    """``adopted``: it was a table before it was a partition; ``recent``: it is one since the slot's place."""

    root: TableId
    name: str
    version: str
    adopted: bool
    recent: bool


class UnloggedChanges:
    """Looks for them. One for each time that the log reader starts.

    Args:
        source: the server and the publication.
        notes: labels as the last reader saw them; kept up to date.
        resumed: whether the log is read on from an earlier place; the first dump comes after everything else.
    """

    def __init__(self, source: PostgresSource, notes: LogNotes, resumed: bool):
        self._source = source
        self._notes = notes
        self._resumed = resumed
        self._memberships: dict[TableId, str] = {}
        self._partitions: dict[int, _Partition] | None = None

    def look(self, query: Query, tables: Sequence[TableId]) -> None:
        """Raises GapError for the publication, SchemaError for partitions and labels, all named."""
        check_covers(self._source, query, tables)
        self._look_at_memberships(query, tables)
        self._look_at_partitions(query, tables)
        self._look_at_labels(query, tables)

    def _look_at_memberships(self, query: Query, tables: Sequence[TableId]) -> None:
        wanted = {TableId("", ""), *tables}
        found = {
            table: str(version)
            for schema, name, version in query(_MEMBERSHIPS, [self._source.slot])
            if (table := TableId(schema, name)) in wanted
        }
        changed = [table for table, version in self._memberships.items() if found.get(table) != version]
        if changed:
            tables_named = ", ".join(str(table) for table in sorted(changed) if table.name)
            raise changed_publication(
                self._source, f"it was changed and put back{': ' if tables_named else ''}{tables_named}"
            )
        self._memberships = found

    def _look_at_partitions(self, query: Query, tables: Sequence[TableId]) -> None:
        captured = [self._source.slot, [each.schema for each in tables], [each.name for each in tables]]
        found = {
            oid: _Partition(TableId(schema, root), name, version, adopted, recent)
            for schema, root, oid, name, version, adopted, recent in query(_PARTITIONS, captured)
        }
        known = self._partitions
        for oid, each in found.items():
            new = (
                self._resumed and each.recent
                if known is None
                else oid not in known or known[oid].version != each.version
            )
            if new and each.adopted:
                raise _unseen(each, f"{each.name} was attached, with whatever rows it had")
        for oid, each in (known or {}).items():
            if oid not in found:
                raise _unseen(each, f"{each.name} was detached or dropped, and its rows with it")
        self._partitions = found

    def _look_at_labels(self, query: Query, tables: Sequence[TableId]) -> None:
        captured = [[each.schema for each in tables], [each.name for each in tables]]
        found: dict[TableId, dict[int, _Label]] = {table: {} for table in tables}
        for schema, name, oid, type_name, text, order, version in query(_LABELS, captured):
            found[TableId(schema, name)][oid] = _Label(type_name, text, order, version)
        renamed = {
            table: cause
            for table, labels in found.items()
            for oid, label in _labels(self._notes.of(table)).items()
            if oid in labels and (cause := label.became(labels[oid]))
        }
        if renamed:
            raise SchemaError(
                f"a label in {', '.join(map(str, renamed))} was renamed, which the log doesn't show",
                where=", ".join(map(str, renamed)),
                cause=f"{'; '.join(dict.fromkeys(renamed.values()))}; rows that came before have the old label",
                remedy="have the rows read again (--where bounds which), then start again: migrator dump start"
                + "".join(f" --table {table.name}" for table in renamed),
            )
        for table, labels in found.items():
            self._notes.note(table, _noted(labels))


def _noted(labels: Mapping[int, _Label]) -> str:
    """Labels of a table by their number, as text."""
    rows = [[oid, each.type, each.text, each.order, each.version] for oid, each in sorted(labels.items())]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else ""


def _labels(noted: str) -> dict[int, _Label]:
    """Inverse of ``_noted``."""
    return {oid: _Label(*label) for oid, *label in json.loads(noted or "[]")}


def _unseen(partition: _Partition, cause: str) -> SchemaError:
    return SchemaError(
        f"the partitions of {partition.root} changed, which the log doesn't show",
        where=str(partition.root),
        cause=cause,
        remedy="start the migration of this table anew; while it runs, make partitions only with"
        " CREATE TABLE ... PARTITION OF, and attach, detach and drop none",
    )
