"""The treatment of each column: chosen by its type and its part in keys and links, or by the user."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrator.errors import ConfigError
from migrator.model.table import Column
from scenarios.chaos.incident.structure import Structure, enumerated

KINDS: Mapping[str, str] = {
    "key": "a pseudonym that keeps order, equality and length: for keys and what names them",
    "text": "a pseudonym that keeps length, classes of characters, case, outer blanks and equality",
    "number": "noise of up to a third; digits, sign and equality stay",
    "date": "moved by one span of whole weeks for the whole file",
    "time": "a time of day, moved by one span for the whole file",
    "bytes": "random bytes of the same number; equality stays",
    "json": "the same shape, with each text and number replaced",
    "uuid": "another UUID, in the same order",
    "blank": "NULL",
    "keep": "as it is",
}
"""The treatments by name, each with its meaning."""
_PLAIN = {
    "bool": "keep", "int8": "number", "int16": "number", "int32": "number", "int64": "number", "float32": "number",
    "float64": "number", "binary": "bytes", "date": "date", "timestamp": "date", "timestamptz": "date",
}  # fmt: skip
_WORDS = (
    ("uuid", "uuid"), ("json", "json"), ("timestamp", "date"), ("datetime", "date"), ("date", "date"),
    ("time", "time"), ("numeric", "number"), ("decimal", "number"), ("year", "number"), ("bigint", "number"),
    ("double", "number"),
)  # fmt: skip
_BLANK = (
    "inet", "cidr", "macaddr", "interval", "xml", "money", "bit", "point", "line", "lseg", "box", "path", "polygon",
    "circle", "tsvector", "tsquery", "geometry", "geography", "hstore",
)  # fmt: skip
_ORDERED = ("key", "uuid", "date", "keep", "time", "blank")


@dataclass(frozen=True, slots=True)
class Treatment:
    """The treatment of a column; ``why`` says who chose it, or by what."""

    table: str
    column: str
    kind: str
    why: str


def chosen(
    structure: Structure, links: Iterable[str], wishes: Mapping[tuple[str, str], str]
) -> list[Treatment]:
    """The treatment of every column.

    Args:
        structure: of the old side.
        links: links that the mapping declares, as ``child.column = parent.column``.
        wishes: treatments by (table, column) that the user asks for.

    Raises ``ConfigError`` for wishes that can't be, and for columns that nothing but a wish can settle.
    """
    _check(structure, wishes)
    keys = linked_columns(structure, links)
    found, open_ = [], []
    for name, table in structure.tables.items():
        for column in table.columns:
            place = name, column.name
            kind, why = by_type(column, place in keys)
            if place in wishes:
                kind, why = wishes[place], "asked for"
            if kind == "blank" and (not column.nullable or place in keys):
                open_.append(f"{name}.{column.name} ({column.source_type})")
            found.append(Treatment(name, column.name, kind, why))
    if open_:
        raise ConfigError(
            "some columns have no pseudonym, and can't be left out",
            where=", ".join(open_),
            cause="their type has no treatment of its own, and they are a key or take no NULL",
            remedy="say what becomes of each: --treat table.column=KIND, or --keep table.column",
        )
    return found


def by_type(column: Column, key: bool) -> tuple[str, str]:
    """The treatment by type, and the reason in words."""
    words = column.source_type.lower()
    if enumerated(column):
        return "keep", "the type lists its values"
    kind = _PLAIN.get(column.type) or ("number" if column.decimal() else "")
    if column.type == "string":
        blank = words.startswith(_BLANK) or words.endswith("[]") or "range" in words
        kind = "blank" if blank else next((one for word, one in _WORDS if words.startswith(word)), "text")
    if kind == "keep":
        return kind, "it has two values"
    if key and kind not in _ORDERED and kind != "json":
        return "key", "it is in a key or a link"
    return kind, f"by its type, {column.source_type}"


def linked_columns(structure: Structure, links: Iterable[str]) -> set[tuple[str, str]]:
    """Columns in primary keys, foreign keys and declared links, and those of other tables that have their names."""
    found = {(name, column) for name, table in structure.tables.items() for column in table.key}
    for child, columns, parent, others in structure.linked():
        found |= {(child, one) for one in columns} | {(parent, one) for one in others}
    for link in links:
        sides = [side.strip().rpartition(".") for side in link.split("=")]
        found |= {(table, column) for table, _, column in sides if table in structure.tables}
    names = {column for _, column in found}
    return found | {
        (name, column)
        for name, table in structure.tables.items()
        for column in table.names()
        if column in names
    }


def wishes(keep: Sequence[str], treat: Sequence[str]) -> dict[tuple[str, str], str]:
    """The user's wishes by (table, column). Raises ``ConfigError`` for one that says nothing."""
    found = {}
    for text in (*(f"{one}=keep" for one in keep), *treat):
        place, mark, kind = text.rpartition("=")
        table, dot, column = place.rpartition(".")
        if not (mark and dot and table and column) or kind not in KINDS:
            raise ConfigError(
                "this says no treatment of a column",
                where=text,
                remedy=f"write table.column=KIND, with KIND one of {', '.join(KINDS)}",
            )
        found[table, column] = kind
    return found


def _check(structure: Structure, asked: Collection[tuple[str, str]]) -> None:
    known = {(name, column) for name, table in structure.tables.items() for column in table.names()}
    if unknown := sorted({*asked} - known):
        raise ConfigError(
            "there are no such columns in the old tables",
            where=", ".join(".".join(one) for one in unknown),
            remedy=f"the tables are {', '.join(sorted(structure.tables))}",
        )
