"""The choice of those differing keys that a repair is asked for."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from migrator.errors import RequestError
from verify.tables.findings.differing import Differing, DifferingTable

_NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8", "float", "double")


@dataclass(frozen=True, slots=True)
class Choice:
    """The limits that were typed: target tables, keys of one of them, a range of its keys. Empty: no limit."""

    tables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_range: tuple[str, str] | None = None

    def options(self) -> list[str]:
        """The same as it is typed, word by word; values that begin with a dash are kept from being options."""
        words = [f"--table={name}" for name in self.tables] + [f"--key={key}" for key in self.keys]
        return [*words, *(["--range", *self.key_range] if self.key_range else [])]


def chosen(differing: Differing, choice: Choice, migration: str) -> Differing:
    """The keys that differ and were asked for. Raises ``RequestError``."""
    if differing.migration != migration:
        raise RequestError(
            "the report is about another migration",
            where=f"--from: {differing.migration}, this is {migration}",
            remedy="name a report of this migration, or let the command verify now",
        )
    if (choice.keys or choice.key_range) and (
        len(choice.tables) != 1 or bool(choice.keys) == bool(choice.key_range)
    ):
        raise RequestError(
            "keys are of one table, and listed or a range",
            where="--table, --key, --range",
            cause=f"{len(choice.tables)} tables were named",
            remedy="name one table, and either --key or --range",
        )
    known = {table.table: table for table in differing.tables}
    unknown = [name for name in choice.tables if name not in known]
    if unknown:
        raise RequestError(
            "the report has no such table",
            where=", ".join(unknown),
            cause=f"it has {', '.join(known) or 'none'}",
            remedy="verify that table, or name one of these",
        )
    names = choice.tables or tuple(known)
    keys = [key for key in differing.keys if key.table in names]
    if choice.keys:
        table = known[names[0]]
        listed = {_ordered(_parsed(text, table), table) for text in choice.keys}
        keys = [key for key in keys if _ordered(key.key, table) in listed]
    if choice.key_range is not None:
        table = known[names[0]]
        low, high = (_ordered(_parsed(text, table), table) for text in choice.key_range)
        if low > high:
            raise RequestError(
                "the range ends before it begins",
                where=f"--range {' '.join(choice.key_range)}",
                remedy="give the lower key first",
            )
        keys = [key for key in keys if low <= _ordered(key.key, table) <= high]
    tables = tuple(table for table in differing.tables if table.table in names)
    return replace(differing, tables=tables, keys=tuple(keys))


def not_differing(found: Differing, choice: Choice) -> list[str]:
    """The listed keys that ``found``, what was chosen, doesn't have."""
    if not choice.keys:
        return []
    (table,) = found.tables
    has = {_ordered(key.key, table) for key in found.keys}
    return [text for text in choice.keys if _ordered(_parsed(text, table), table) not in has]


def _parsed(text: str, table: DifferingTable) -> tuple[str, ...]:
    parts: tuple[str, ...] = (text,)
    cause = ""
    if len(table.key) != 1:
        try:
            parts = tuple(next(csv.reader([text], strict=True), ()))
        except csv.Error as error:
            cause = f"it is no row of CSV: {error}"
    if cause or len(parts) != len(table.key):
        raise RequestError(
            f"{text!r} isn't a key of {table.table}",
            where=text,
            cause=cause or f"it has {len(parts)} value(s), the key is ({', '.join(table.key)})",
            remedy="give one value for each column of the key, separated by commas, quoted as in CSV",
        )
    return parts


def _ordered(key: tuple[str, ...], table: DifferingTable) -> tuple[tuple[int, Decimal] | str, ...]:
    """A key in its order, however it is written: numbers as such, NaN last; all else by its characters."""
    bases = {name: base for name, _, base in table.columns}
    return tuple(
        _number(value, name)
        if bases.get(name) in _NUMBERS
        else value.lower()
        if bases.get(name) == "uuid"
        else value
        for name, value in zip(table.key, key, strict=True)
    )


def _number(text: str, column: str) -> tuple[int, Decimal]:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise RequestError(
            f"{text!r} is no number", where=f"key column {column}", remedy="give a number"
        ) from None
    return (1, Decimal(0)) if number.is_nan() else (0, number)
