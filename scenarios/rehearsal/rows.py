"""Rows made up for tables: values by type, drawn under a seed. Pure; the server says whether it takes them.

A value is drawn from what its type allows and, where a CHECK of the table names constants, bounds or a pattern, from
those as well; what a CHECK surely refuses (``constraints``) is drawn again. Keys and other unique columns count up.
Texts, dates and numbers are passed as text: each server reads them as the column's type.
"""

from __future__ import annotations

import math
import random
import re
import struct
import uuid
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta

from scenarios.rehearsal.constraints.conditions import fits, of_table
from scenarios.rehearsal.constraints.patterns import drawn_from
from scenarios.rehearsal.tables import Column, Table

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbour", "island", "juniper")
_DAY_ONE = date(2021, 1, 1)
_NUMBERS = re.compile(r"(?<![\w.'])-?\d+(?:\.\d+)?")
_TEXTS = re.compile(r"'((?:[^']|'')*)'")
_LENGTH = re.compile(r"\((\d+)(?:,\s*(-?\d+))?\)")
_LIMITS = {"smallint": 32_000, "tinyint": 120, "mediumint": 8_000_000, "year": 2_150, "int2": 32_000}
_BINARY = ("bytea", "binary", "varbinary", "blob")
_TRIES = 40
_FEW = 5
"""Digits before the point of a made number, unless the type has fewer."""


class CannotMake(Exception):
    """Raised where no value can be made up for a column; the text names it, and its type."""


class RowMaker:
    """Makes rows.

    Args:
        seed: of all draws.
        spread: added to numbers that count up, so that they meet no row that is there.
    """

    def __init__(self, seed: int | str, spread: int = 0):
        self._dice = random.Random(seed)
        self._spread = spread

    def row(
        self, table: Table, number: int, parents: Mapping[str, object], *, nulls: bool = True
    ) -> dict[str, object]:
        """A row by column.

        Args:
            table: its table.
            number: which one it is: unique columns take it.
            parents: values of the columns that name other rows.
            nulls: whether columns that may be NULL are, one time in five.

        Raises ``CannotMake`` for a type that isn't known.
        """
        alone = {one[0] for one in (table.key, *table.unique) if len(one) == 1}
        apart = alone | {
            one[-1] for one in (table.key, *table.unique) if one and not set(one) & (alone | set(parents))
        }
        found: dict[str, object] = {}
        for column in table.columns:
            if not column.written:
                continue
            if column.name in parents:
                found[column.name] = parents[column.name]
            elif column.name in apart:
                found[column.name] = self.unique(column, number, table)
            elif column.nullable and nulls and self._dice.random() < 0.2:
                found[column.name] = None
            else:
                found[column.name] = self.value_or_null(column, table)
        free = found.keys() - parents.keys() - apart
        return self.fitted(table, found, free, lambda column: self.value_or_null(column, table))

    def fitted(
        self, table: Table, row: Mapping[str, object], free: Collection[str], draw: Callable[[Column], object]
    ) -> dict[str, object]:
        """The row with other values in ``free`` columns, drawn until no CHECK surely refuses it; the last draw where
        none does."""
        found, conditions = dict(row), of_table(table)
        for _ in range(_TRIES):
            wrong = {name for one in conditions if one.refuses(found) for name in one.columns}
            again = [one for one in table.columns if one.name in wrong and one.name in free]
            if not again:
                break
            found |= {column.name: draw(column) for column in again}
        return found

    def value_or_null(self, column: Column, table: Table) -> object:
        """Any value of the column's type that no CHECK of it alone surely refuses; NULL for a type that isn't known,
        where that is allowed."""
        try:
            for _ in range(_TRIES):
                value = self.value(column, table)
                if fits(table, column.name, value):
                    break
            return value
        except CannotMake:
            if column.nullable:
                return None
            raise

    def unique(self, column: Column, number: int, table: Table) -> object:
        """A value that no other number has; where a CHECK wants a pattern, one that hardly any has."""
        count = number + 1 + self._spread
        kind = kind_of(column)
        if kind == "text" and (text := _patterned(column, table, random.Random(f"{column.name}/{count}"))):
            return text
        if column.chosen or kind == "boolean":
            return self.value(column, table)
        if kind == "number":
            most = largest(column)
            if count > most:
                count = number + 1 + most // 2
            if count > most:
                raise CannotMake(f"{column.name} {column.type}: no further number fits")
            return str(count)
        if kind == "text":
            return _cut(f"{_WORDS[number % len(_WORDS)]}{count}", f"{count:x}", column)
        if kind == "uuid":
            return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{column.name} {count}"))
        if kind in ("date", "timestamp"):
            day = _DAY_ONE + timedelta(days=count % 20_000)
            return f"{day}" if kind == "date" else f"{day} {count % 24:02}:{count % 60:02}:00"
        if kind == "binary":
            return count.to_bytes(max(min(longest(column, 8), 8), 1), "big")
        return self.value(column, table)

    def value(self, column: Column, table: Table) -> object:
        """Any value of the column's type. Raises ``CannotMake``."""
        dice = self._dice
        if column.chosen:
            return dice.choice(column.chosen)
        kind = kind_of(column)
        if kind == "text" and (text := _patterned(column, table, dice)):
            return text
        if kind in ("number", "float") and dice.random() < 0.5:
            between = _between(column, table, dice)
            if between is not None:
                return between
        about = [check for check in table.checks if re.search(rf"\b{re.escape(column.name)}\b", check)]
        if about and dice.random() < 0.8:
            named = self._named(kind, about)
            if named is not None:
                return named
        if kind not in _MAKERS:
            raise CannotMake(f"{column.name} {column.type}: no value is known for this type")
        return _MAKERS[kind](column, dice)

    def _named(self, kind: str, checks: list[str]) -> object:
        """A value that the checks name, or one beside it; None where they name none of this kind."""
        if kind == "number":
            numbers = [float(one) for check in checks for one in _NUMBERS.findall(_TEXTS.sub("", check))]
            numbers += [
                float(one) for check in checks for one in _TEXTS.findall(check) if _NUMBERS.fullmatch(one)
            ]
            if numbers:
                number = self._dice.choice(numbers) + self._dice.choice((-1, 0, 0, 1))
                return f"{number:g}" if number != int(number) else str(int(number))
        if kind in ("text", "date", "timestamp"):
            texts = [one.replace("''", "'") for check in checks for one in _TEXTS.findall(check)]
            if texts:
                return self._dice.choice(texts)
        return None


def _patterned(column: Column, table: Table, dice: random.Random) -> str:
    """A text of the pattern that a CHECK wants of a column, "" where it wants none."""
    for pattern in (text for one in of_table(table) for text in one.patterns.get(column.name, ())):
        for _ in range(_TRIES):
            text = drawn_from(pattern, dice)
            if text and len(text) <= longest(column, 10**9):
                return text
    return ""


def _between(column: Column, table: Table, dice: random.Random) -> str | None:
    """A whole number between the bounds that CHECKs name of a column; None where they name none."""
    conditions = of_table(table)
    least = [
        float(one) for found in conditions for one in found.least.get(column.name, ()) if _is_number(one)
    ]
    most = [float(one) for found in conditions for one in found.most.get(column.name, ()) if _is_number(one)]
    if not least and not most:
        return None
    room = min(largest(column), 10**_FEW - 1)
    low = math.ceil(max(least)) if least else min(math.floor(min(most)) - room, 0)
    high = math.floor(min(most)) if most else max(low + 1, room)
    return str(dice.randint(low, high)) if low <= high else None


def _is_number(text: str) -> bool:
    return _NUMBERS.fullmatch(text) is not None


def kind_of(column: Column) -> str:
    """The family of a type, empty where it isn't known."""
    name = column.type
    if name.endswith("[]"):
        return "array"
    for pattern, kind in _KINDS:
        if re.match(pattern, name):
            return kind
    return ""


_KINDS = (
    (r"bool|tinyint\(1\)", "boolean"),
    (r"bit", "bit"),
    (r"(small|big|tiny|medium)?int(eger)?\b|int\d|(small|big)?serial|oid\b", "number"),
    (r"numeric|decimal|dec\b", "number"),
    (r"real|double|float|money", "float"),
    (r"year", "year"),
    (r"timestamp|datetime", "timestamp"),
    (r"date\b", "date"),
    (r"time", "time"),
    (r"interval", "interval"),
    (r"uuid", "uuid"),
    (r"json", "json"),
    (r"xml", "xml"),
    (r"inet|cidr", "inet"),
    (r"tsvector", "tsvector"),
    (r"geometry$", "geometry"),
    (r"bytea|(var)?binary|(tiny|medium|long)?blob", "binary"),
    (r"(n?var)?char|character|(tiny|medium|long)?text|citext|name\b|\"?char|bpchar", "text"),
)


def longest(column: Column, otherwise: int) -> int:
    """The length that a type names, in characters or bytes; ``otherwise`` where it names none."""
    found = _LENGTH.search(column.type)
    return int(found[1]) if found else otherwise


def largest(column: Column) -> int:
    """The largest whole number that is made for a column of numbers."""
    base = column.type.split("(")[0].split(" ")[0]
    if base in ("numeric", "decimal", "dec"):
        found = _LENGTH.search(column.type)
        digits = 9 if found is None else int(found[1]) - int(found[2] or 0)
        return int(10 ** max(min(digits, 9), 0)) - 1
    return int(_LIMITS.get(base, 2_000_000_000))


def _number(column: Column, dice: random.Random) -> object:
    most = min(largest(column), 10**_FEW - 1)
    found = _LENGTH.search(column.type)
    scale = int(found[2] or 0) if found and column.type.startswith(("numeric", "dec")) else 0
    whole = dice.randint(0, most)
    return f"{whole}.{dice.randrange(10**scale):0{scale}}" if scale > 0 else str(whole)


def _text(column: Column, dice: random.Random) -> object:
    words = f"{dice.choice(_WORDS)} {dice.choice(_WORDS)} {dice.randrange(100)}"
    return _cut(words, words, column)


def _cut(words: str, short: str, column: Column) -> str:
    base = column.type.split("(")[0]
    least = 1 if base in ("char", "character", "bpchar", '"char"') else 10**9
    length = longest(column, least)
    found = words if len(words) <= length else short
    return found[-length:].strip() or found[:1]


def _moment(_: Column, dice: random.Random) -> object:
    day = _DAY_ONE + timedelta(days=dice.randrange(1_400))
    return f"{day} {dice.randrange(4, 24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"


_MAKERS: Mapping[str, Callable[[Column, random.Random], object]] = {
    "boolean": lambda column, dice: dice.choice(("0", "1") if "int" in column.type else ("false", "true")),
    "number": _number,
    "float": lambda _, dice: str(dice.randrange(4_000) / 4),
    "year": lambda _, dice: str(dice.randint(1990, 2030)),
    "timestamp": _moment,
    "date": lambda _, dice: str(_DAY_ONE + timedelta(days=dice.randrange(1_400))),
    "time": lambda _, dice: f"{dice.randrange(24):02}:{dice.randrange(60):02}:00",
    "interval": lambda _, dice: f"{dice.randrange(90)} minutes",
    "uuid": lambda _, dice: str(uuid.UUID(int=dice.getrandbits(128), version=4)),
    "json": lambda _, dice: f'{{"n": {dice.randrange(100)}}}',
    "xml": lambda _, dice: f"<n>{dice.randrange(100)}</n>",
    "inet": lambda _, dice: f"10.0.{dice.randrange(256)}.{dice.randrange(1, 255)}",
    "tsvector": lambda _, dice: dice.choice(_WORDS),
    "array": lambda _, __: "{}",
    # MySQL's own form: no reference system, then a point as its bytes.
    "geometry": lambda _, dice: struct.pack("<IBIdd", 0, 1, 1, dice.randrange(180), dice.randrange(90)),
    "binary": lambda column, dice: dice.randbytes(min(longest(column, 6), 6)),
    "text": _text,
}
