"""The structure of the old side: tables with keys and foreign keys, as JSON and as statements that make them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from migrator.model.codecs.codec import schema_from_json, schema_to_json
from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema

_ENUMERATED = ("enum(", "set(")
_TEXTS = ("char", "text", "enum", "set")
KNOWN_TO_POSTGRES = (
    "bigint", "bit", "boolean", "bytea", "char", "character", "cidr", "date", "double precision", "inet", "int",
    "integer", "interval", "json", "jsonb", "macaddr", "money", "numeric", "real", "smallint", "text", "time",
    "timestamp", "uuid", "xml",
)  # fmt: skip
"""Types that every PostgreSQL has, by their first words."""


@dataclass(frozen=True)
class Structure:
    """The tables of a side that matter, by name.

    Attributes:
        kind: of the server.
        schema: of the tables, on PostgreSQL; elsewhere empty.
        tables: with their columns and keys.
        references: the foreign keys between them.
    """

    kind: str
    schema: str
    tables: Mapping[str, TableSchema]
    references: tuple[Reference, ...] = ()

    def linked(self) -> list[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
        """The foreign keys as (child, columns, parent, parent's columns)."""
        return [(one.child.name, one.columns, one.parent.name, one.parent_columns) for one in self.references]

    def without(self, dropped: Collection[tuple[str, str]]) -> Structure:
        """The same without some columns, given as (table, column), and the foreign keys over them."""
        tables = {
            name: table.without([column for other, column in dropped if other == name])
            for name, table in self.tables.items()
        }
        kept = tuple(
            one
            for one in self.references
            if not {(one.child.name, name) for name in one.columns} & {*dropped}
            and not {(one.parent.name, name) for name in one.parent_columns} & {*dropped}
        )
        return replace(self, tables=tables, references=kept)


def to_json(structure: Structure) -> dict[str, Any]:
    """A document that says nothing of where the tables were."""
    return {
        "kind": structure.kind,
        "schema": structure.schema,
        "tables": [schema_to_json(_placed(table, "")) for table in structure.tables.values()],
        "references": [
            [child, list(columns), parent, list(others)]
            for child, columns, parent, others in structure.linked()
        ],
    }


def from_json(document: Mapping[str, Any]) -> Structure:
    """The structure of a document. Raises ``FormatError``, ``KeyError``."""
    tables = [schema_from_json(one) for one in document["tables"]]
    schema = str(document["schema"])
    return Structure(
        str(document["kind"]),
        schema,
        {one.id.name: _placed(one, schema) for one in tables},
        tuple(
            Reference(TableId(schema, child), tuple(columns), TableId(schema, parent), tuple(others))
            for child, columns, parent, others in document["references"]
        ),
    )


def statements(structure: Structure) -> list[str]:
    """Statements that make the tables on an empty database.

    Names of columns, types, keys and foreign keys are those of the original; defaults, CHECKs, indexes and triggers
    aren't made, what the server computed is an ordinary column, and a type of somebody's own is a text.
    """
    postgres = structure.kind == "postgresql"
    found = [
        f"CREATE TABLE {_q(name, postgres)} (\n    "
        + ",\n    ".join(
            [
                *(_column(one, postgres) for one in table.columns),
                f"PRIMARY KEY ({_names(table.key, postgres)})",
            ]
        )
        + "\n)"
        for name, table in structure.tables.items()
    ]
    primary = {name: table.key for name, table in structure.tables.items()}
    for child, columns, parent, others in structure.linked():
        if parent not in primary or child not in primary:
            continue
        if others != primary[parent]:
            unique = f"ALTER TABLE {_q(parent, postgres)} ADD UNIQUE ({_names(others, postgres)})"
            if unique not in found:
                found.append(unique)
        found.append(
            f"ALTER TABLE {_q(child, postgres)} ADD FOREIGN KEY ({_names(columns, postgres)})"
            f" REFERENCES {_q(parent, postgres)} ({_names(others, postgres)})"
        )
    return found


def of_schemas(
    kind: str, schema: str, tables: Iterable[TableSchema], references: Sequence[Reference] = ()
) -> Structure:
    """The structure of tables as capture or the judge reads them."""
    return Structure(
        kind,
        schema,
        {one.id.name: _placed(one, schema) for one in tables},
        tuple(
            replace(one, child=TableId(schema, one.child.name), parent=TableId(schema, one.parent.name))
            for one in references
        ),
    )


def enumerated(column: Column) -> bool:
    """Tells whether the type itself lists the values."""
    return column.source_type.lower().startswith(_ENUMERATED)


def _placed(table: TableSchema, schema: str) -> TableSchema:
    return replace(table, id=TableId(schema, table.id.name), needed=None)


def _column(column: Column, postgres: bool) -> str:
    kind = column.source_type
    if postgres and not kind.lower().startswith(KNOWN_TO_POSTGRES):
        kind = "text"
    collated = column.collation and not postgres and any(word in kind.lower() for word in _TEXTS)
    collation = f" COLLATE {column.collation}" if collated else ""
    return f"{_q(column.name, postgres)} {kind}{collation}{' NULL' if column.nullable else ' NOT NULL'}"


def _names(names: Sequence[str], postgres: bool) -> str:
    return ", ".join(_q(name, postgres) for name in names)


def _q(name: str, postgres: bool) -> str:
    mark = '"' if postgres else "`"
    return mark + name.replace(mark, mark * 2) + mark
