"""Values that changed in every row of a table without a trace in the log, told by its columns in the catalog.

- A column that is dropped and added again under its name has another number (``attnum``), and other values.
- ALTER COLUMN ... TYPE ... USING writes all rows anew, also where the type stays what it was. The table then has
  another file (``pg_class.relfilenode``) and the column another version (``pg_attribute.xmin``). Either of
  them alone is harmless: VACUUM FULL, CLUSTER and TRUNCATE give another file, a default or NOT NULL another
  version. So does ALTER COLUMN ... SET EXPRESSION of a stored generated column, which the log has from 18 on.
- ALTER TYPE ... ADD, DROP, ALTER ATTRIBUTE of a composite type: all rows that have it are printed otherwise.
- Rows of a table that inherits from it are read by SELECT, and logged as that table's.

What became of a column that no mapping needs stops nobody. But it isn't forgotten: a mapping that reads the column
one day would find values of before. So what was noted of such a column stays noted until the table's rows are read
again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.adapters.sources.postgres.reflection import LOGGED, Query
from migrator.errors import SchemaError
from migrator.model.table import TableId

_FILES = """
SELECT captured.schema, captured.name, c.oid::int8, c.relfilenode::int8,
       (SELECT min(i.inhrelid::pg_catalog.regclass::text) FROM pg_catalog.pg_inherits i
        WHERE i.inhparent = c.oid AND c.relkind = 'r')
FROM unnest($1::text[], $2::text[]) AS captured (schema, name)
JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name AND c.relkind IN ('r', 'p')
"""
_COLUMNS = f"""
SELECT a.attrelid::int8, a.attname::text, a.attnum::int4, a.xmin::text FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ANY($1::int8[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND {LOGGED}
"""
_TYPES = f"""
WITH RECURSIVE made (relid, attname, oid) AS (
  SELECT a.attrelid, a.attname::text, a.atttypid FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = ANY($1::int8[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND {LOGGED}
  UNION
  SELECT m.relid, m.attname, p.oid FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid CROSS JOIN LATERAL (
    VALUES (t.typelem), (t.typbasetype)
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
  ) AS p(oid) WHERE p.oid <> 0
)
SELECT m.relid::int8, m.attname, t.oid::pg_catalog.regtype::text,
       pg_catalog.string_agg(a.attnum || ' ' || a.atttypid || ' ' || a.atttypmod, ',' ORDER BY a.attnum)
FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid JOIN pg_catalog.pg_attribute a
  ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped GROUP BY m.relid, m.attname, t.oid
"""
Needs = Callable[[str], bool]
"""Tells whether a mapping needs a table's column of that name."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column's number and version, and the file of its table when they were noted."""

    number: int
    version: str
    file: int

    def became(self, later: ColumnFacts, name: str) -> str:
        """Tells what was done to the column's values; empty if nothing."""
        if later.number != self.number:
            return f"column {name!r} was dropped and added again"
        if later.version != self.version and later.file != self.file:
            return f"all rows were written anew, and column {name!r} was altered: its values may be others"
        return ""


@dataclass(frozen=True, slots=True)
class Structure:
    """A table as a look found it.

    Attributes:
        oid: its number (see ``identity``).
        file: the file that it has now.
        columns: what is known of each column.
        types: the attributes of each composite type that a column has, itself or within.
        users: the columns that have such a type; only a look knows them, they aren't noted.
    """

    oid: int
    file: int
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, Collection[str]] = field(default_factory=dict)

    def became(self, later: Structure, needs: Needs) -> str:
        """Tells what was done to rows that both looks' table had, in columns that are needed; empty if nothing."""
        for name, known in self.columns.items():
            now = later.columns.get(name)
            # One that is gone: its next change stops by name; with none, there may be a mapping without it by now.
            if needs(name) and now is not None and (cause := known.became(now, name)):
                return cause
        for old, new in self.renamed(later).items():
            if needs(new) and (cause := self.columns[old].became(later.columns[new], new)):
                return cause
        for name, attributes in self.types.items():
            if later.types.get(name, attributes) != attributes and any(map(needs, later.users[name])):
                return f"the attributes of type {name} were changed: all its values are printed otherwise"
        return ""

    def renamed(self, later: Structure) -> dict[str, str]:
        """The columns that have another name in a later look and are the same by their numbers, new names by old
        ones."""
        names = {facts.number: name for name, facts in later.columns.items() if name not in self.columns}
        return {
            name: names[facts.number]
            for name, facts in self.columns.items()
            if name not in later.columns and facts.number in names
        }

    def noted_after(self, earlier: Structure | None, needs: Needs) -> Structure:
        """Returns this look, with what an earlier one noted of columns that nothing needs, gone ones too."""
        if earlier is None:
            return self
        columns = {name: facts for name, facts in earlier.columns.items() if not needs(name)}
        for old, new in earlier.renamed(self).items():
            known = earlier.columns[old]
            if not needs(new) and known.became(self.columns[new], new):
                columns[new] = known
        types = {
            name: attributes
            for name, attributes in earlier.types.items()
            if not any(map(needs, self.users.get(name, ())))
        }
        return Structure(self.oid, self.file, {**self.columns, **columns}, {**self.types, **types})

    def to_json(self) -> list[Any]:
        """Returns the text to be noted."""
        return [
            self.oid,
            self.file,
            {name: [facts.number, facts.version, facts.file] for name, facts in self.columns.items()},
            {**self.types},
        ]

    @staticmethod
    def from_json(noted: Sequence[Any]) -> Structure:
        """Inverse of ``to_json``; of before columns had a file noted, it is the table's."""
        oid, file, columns, types = noted
        known = {name: ColumnFacts(*facts, *([] if facts[2:] else [file])) for name, facts in columns.items()}
        return Structure(oid, file, known, types)


def found_structures(query: Query, tables: Sequence[TableId]) -> dict[TableId, Structure]:
    """The tables as they are now. Raises ``SchemaError`` for one that another table inherits from."""
    files = query(_FILES, [[table.schema for table in tables], [table.name for table in tables]])
    columns: dict[int, dict[str, ColumnFacts]] = {}
    types: dict[int, dict[str, str]] = {}
    users: dict[int, dict[str, set[str]]] = {}
    file_of = {oid: file for _, _, oid, file, _ in files}
    for oid, name, number, version in query(_COLUMNS, [list(file_of)]):
        columns.setdefault(oid, {})[name] = ColumnFacts(number, version, file_of[oid])
    for oid, column, name, attributes in query(_TYPES, [list(file_of)]):
        types.setdefault(oid, {})[name] = attributes
        users.setdefault(oid, {}).setdefault(name, set()).add(column)
    for schema, name, _, _, child in files:
        if child is not None:
            raise SchemaError(
                f"table {schema}.{name} has got a table that inherits from it",
                where=f"{schema}.{name}",
                cause=f"rows of {child} are read as its rows, and are not in its log",
                remedy=f"ALTER TABLE {child} NO INHERIT {name}; then start again",
            )
    return {
        TableId(schema, name): Structure(
            oid, file, columns.get(oid, {}), types.get(oid, {}), users.get(oid, {})
        )
        for schema, name, oid, file, _ in files
    }


def rewritten(changed: Mapping[TableId, str]) -> SchemaError:
    """The named error for what became of tables."""
    return SchemaError(
        f"values in {', '.join(map(str, changed))} changed in a way that the log doesn't show",
        where=", ".join(map(str, changed)),
        cause="; ".join(f"{table}: {cause}" for table, cause in changed.items()),
        remedy="have the rows read again, then start again (but start the migration anew,"
        " docs/how-to/start-anew.md, if it was a column of the key): "
        "migrator dump start" + "".join(f" --table {table.name}" for table in changed),
    )
