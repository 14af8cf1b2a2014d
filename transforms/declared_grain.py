"""The meaning of ``grain=``: the tables that have a grain, and the columns of each that hold its values. Pure."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrator.model.reach import VALUE, spoken
from migrator.model.table import Column, TableSchema
from transforms.registry import TargetMapping

DeclaredGrain = dict[str, tuple[str, ...]]
"""The tables that have a grain, the first one its own, and the columns of each that hold its values."""


@dataclass
class GrainProblem(Exception):
    """The reason why no reach can be derived, and what to declare."""

    what: str
    cause: str
    remedy: str


def value_column(target: str, name: str) -> str:
    """The column of the mirror that keeps the hash of a computed value: short, whatever the names are."""
    return f"{VALUE}{name[:30]}~{hashlib.sha256(f'{target} {name}'.encode()).hexdigest()[:12]}"


def named_column(target: TargetMapping, schema: TableSchema, name: str) -> str:
    """The column that a name in ``grain=`` or ``links=`` stands for."""
    value = value_column(target.name, name)
    return value if value in schema.names() else name


def grain_tables(target: TargetMapping) -> tuple[str, ...]:
    """The parameters of a computed grain: tables, the grain's own first; empty for a grain of columns."""
    if not callable(target.grain):
        return ()
    return tuple(inspect.signature(target.grain).parameters)


def declared_grains(target: TargetMapping, schemas: Mapping[str, TableSchema]) -> list[DeclaredGrain]:
    """Per grain its tables, and the columns of each: none if it is computed."""
    if callable(target.grain):
        tables = grain_tables(target)
        unknown = [name for name in tables if name not in target.sources]
        if not tables or unknown:
            raise GrainProblem(
                "the computed grain's parameters are no tables of the function",
                f"{', '.join(unknown) or 'it has none'}; the function reads {', '.join(target.sources)}",
                "name its parameters after tables: the grain's own first, then tables linked many-to-one to it",
            )
        return [{tables[0]: ()}]
    texts = (target.grain,) if isinstance(target.grain, str) else tuple(target.grain or ())
    found: dict[frozenset[str], DeclaredGrain] = {}
    for text in texts:
        ends = _ends(target, schemas, str(text))
        grain = found.setdefault(frozenset(ends), {})
        for table, column in ends.items():
            grain[table] = (*grain.get(table, ()), column)
    if not found:
        raise GrainProblem("grain= names no column", "", 'write grain="table.column"')
    met: set[str] = set()
    for names in found:
        if met & names:
            raise GrainProblem(
                f"grain={list(texts)!r} names table {', '.join(sorted(met & names))} in two grains",
                "what several tables share is one grain, each of whose texts names the same tables",
                'write a column of every table in each text: grain=["a.x = b.x", "a.y = b.y"]',
            )
        met |= names
    return list(found.values())


def _ends(target: TargetMapping, schemas: Mapping[str, TableSchema], text: str) -> dict[str, str]:
    """One text of a grain: a column, or one of each table that shares the grain with the others."""
    known = _column_named(target, schemas, text)
    parts = [text] if known is not None else re.split(r"\s*=\s*", text.strip())
    found: dict[str, str] = {}
    for part in parts:
        one = _column_named(target, schemas, part)
        if one is None:
            raise GrainProblem(
                f"grain {text!r} names no column of the function's tables"
                + (f": {part!r}" if len(parts) > 1 else ""),
                f"it reads {', '.join(target.sources)}",
                'write "table.column", with a parameter of the function as the table; what is computed: values=',
            )
        if one[0] in found:
            raise GrainProblem(
                f"grain {text!r} names two columns of table {one[0]}",
                "a row has one value of a grain that tables share",
                "link the table's second part with roles= and links=, and leave it out of grain=",
            )
        found[one[0]] = one[1]
    return found


def _column_named(
    target: TargetMapping, schemas: Mapping[str, TableSchema], text: str
) -> tuple[str, str] | None:
    """Table and column that ``table.column`` names; None if there is no such column."""
    table, dot, column = _table_and_column(text, target.sources)
    if not dot or table not in target.sources:
        return None
    column = named_column(target, schemas[table], column)
    return (table, column) if column in schemas[table].names() else None


def check_grain_types(grains: Sequence[DeclaredGrain], schemas: Mapping[str, TableSchema]) -> None:
    """Values of a grain that tables share are held, and numbered, in one type."""
    for grain in grains:
        (first, columns), *others = grain.items()
        for table, names in others:
            pairs = zip(columns_of(schemas[first], columns), columns_of(schemas[table], names), strict=True)
            for a, b in pairs:
                if a.name.startswith(VALUE) != b.name.startswith(VALUE) or a.type != b.type:
                    raise _other_type(first, a, table, b)


def _other_type(first: str, a: Column, table: str, b: Column) -> GrainProblem:
    ends = f"{first}.{spoken(a.name)}", f"{table}.{spoken(b.name)}"
    kinds = [
        "a computed value" if one.name.startswith(VALUE) else f"{one.source_type} ({one.type})"
        for one in (a, b)
    ]
    return GrainProblem(
        f"the grain's columns {ends[0]} and {ends[1]} are of two types",
        f"{ends[0]} is {kinds[0]}, {ends[1]} is {kinds[1]}: what tables share must be one type",
        f'give each of them a value of one type with values=, such as {{"{first}.shared": lambda t:'
        f' t["{spoken(a.name)}"].cast("string"), "{table}.shared": lambda t: t["{spoken(b.name)}"].cast("string")}},'
        f' and write grain="{first}.shared = {table}.shared"',
    )


def _table_and_column(text: str, tables: Sequence[str]) -> tuple[str, str, str]:
    """``table.column`` in its parts; both may have dots in their names, so known tables decide, the longest
    first."""
    for table in sorted(tables, key=len, reverse=True):
        if text.startswith(f"{table}."):
            return table, ".", text[len(table) + 1 :]
    return text.partition(".")


def columns_of(schema: TableSchema, names: Sequence[str]) -> list[Column]:
    """Columns by name."""
    by_name = {column.name: column for column in schema.columns}
    return [by_name.get(name) or Column(name, "", True, "a column that isn't captured") for name in names]
