"""Rules for the values that a target column holds, and those that a source column may break. Pure.

A target says for each column what it takes, as rules. Those that the source column's type keeps by itself are left
out; for the others the source is asked for rows that break them. What it finds is only suspected: the target
decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from migrator.model.table import Column


class Limit(Enum):
    """A kind of rule. In parentheses what ``Rule.bounds`` are."""

    NO_NULL = "NULL"
    CHARACTERS = "more characters"
    """(most)"""
    BITS = "another number of bits"
    """(least, most), of text that is zeros and ones."""
    OCTETS = "more bytes"
    """(most), of text in UTF-8."""
    WIDTH = "another number of bytes"
    """(exactly)"""
    RANGE = "a number out of range"
    """(least, most)"""
    SCALE = "more digits behind the point"
    """(most)"""
    DIGITS = "more digits than a floating-point number keeps"
    """(most)"""
    FINITE = "no finite number"
    SECONDS = "more digits of a second"
    """(most)"""
    MOMENTS = "a moment out of range"
    """(first, last), in ISO 8601."""
    MEMBERS = "no member"
    """(each member)"""
    LETTERS = "a letter that its character set lacks"
    """(character set)"""
    NO_ZERO = "the character U+0000"
    JSON = "no JSON"
    UUID = "no UUID"
    TIME = "no time of day"
    """(most digits of a second)"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that every value of a target column keeps."""

    limit: Limit
    bounds: tuple[int | str | Decimal, ...] = ()


_NUMBERS = re.compile(r"\((\d+)")
_MEMBER = re.compile(r"'((?:[^']|'')*)'")
_TEXT_OCTETS = {"tinytext": 255, "text": 65_535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOB_OCTETS = {"tinyblob": 255, "blob": 65_535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_MYSQL_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_MYSQL_SETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_MOST_OCTETS = 4
"""The most bytes of a character in UTF-8."""
_MICROSECONDS = 6
_PLAIN_SECONDS = {"time": 0, "datetime": 0, "timestamp": 0}
"""MySQL's types without digits; PostgreSQL prints its own with ``with time zone`` or ``without time zone``."""
_PRINTED = {"text", "number", "bool", "date", "moment", "time"}
"""Kinds of values that a mapping may hand to a column that takes text."""
_KINDS = {
    **dict.fromkeys((Limit.CHARACTERS, Limit.BITS, Limit.MEMBERS), _PRINTED),
    **dict.fromkeys((Limit.JSON, Limit.UUID, Limit.TIME), _PRINTED),
    Limit.LETTERS: {"text"},
    Limit.NO_ZERO: {"text"},
    Limit.OCTETS: {*_PRINTED, "binary"},
    Limit.WIDTH: {"binary"},
    Limit.RANGE: {"number", "float"},
    Limit.SCALE: {"number", "float"},
    Limit.DIGITS: {"number"},
    Limit.FINITE: {"float"},
    Limit.SECONDS: {"moment", "time"},
    Limit.MOMENTS: {"moment", "date"},
}


def doubts(column: Column, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that values of a source column may break, as far as its type tells."""
    return tuple(rule for rule in rules if _may_break(column, rule))


def _may_break(column: Column, rule: Rule) -> bool:
    if rule.limit is Limit.NO_NULL:
        return column.nullable
    if _kind(column) not in _KINDS[rule.limit]:
        return False
    kept = _KEPT.get(rule.limit)
    return kept is None or not kept(column, rule)


def _word(column: Column) -> str:
    return re.split(r"[ (]", column.source_type.lower(), maxsplit=1)[0]


def _kind(column: Column) -> str:
    """Returns the kind of the column's values, however they are printed."""
    if column.type.startswith(("int", "decimal")):
        return "number"
    if column.type.startswith("float"):
        return "float"
    if column.type != "string":
        return {"timestamp": "moment", "timestamptz": "moment"}.get(column.type, column.type)
    word = _word(column)
    if word in ("numeric", "decimal"):
        return "number"
    if word in ("time", "interval"):
        return "time"
    return "moment" if word in ("datetime", "timestamp", "date") else "text"


def _size(column: Column) -> int | None:
    """The number in the type's parentheses."""
    found = _NUMBERS.search(column.source_type)
    return int(found[1]) if found and not column.source_type.lower().startswith(("enum", "set")) else None


def _short(column: Column, rule: Rule) -> bool:
    most, bounds = int(rule.bounds[0]), _range(column)
    if bounds is not None:
        digits = max(len(str(abs(int(bound)))) for bound in bounds)
        decimal = column.decimal()
        return digits + 1 + (1 + decimal[1] if decimal and decimal[1] else 0) <= most
    size = _size(column)
    return _kind(column) == "text" and size is not None and size <= most


def _narrow(column: Column, rule: Rule) -> bool:
    most, word, size = int(rule.bounds[0]), _word(column), _size(column)
    # PostgreSQL's text is of any length; only MySQL names a collation of each.
    charset = column.collation.partition("_")[0]
    known = _BLOB_OCTETS.get(word) or (_TEXT_OCTETS.get(word) if charset in _MYSQL_SETS else None)
    if known is None and size is not None:
        known = size if column.type == "binary" else size * _MOST_OCTETS
    return known is not None and known <= most


def _as_wide(column: Column, rule: Rule) -> bool:
    size, word = _size(column), _word(column)
    width = (size + 7) // 8 if word == "bit" and size is not None else size if word == "binary" else None
    return width == int(rule.bounds[0])


def _range(column: Column) -> tuple[Decimal, Decimal] | None:
    """The least and greatest number of the column's type."""
    word, unsigned = _word(column), "unsigned" in column.source_type
    decimal = column.decimal()
    if word in _MYSQL_INTEGERS and (column.type.startswith("int") or unsigned):
        bits = _MYSQL_INTEGERS[word] if unsigned or word in ("tinyint", "mediumint") else 0
        if bits:
            return (Decimal(0), Decimal(2**bits - 1)) if unsigned else _signed(bits)
    if column.type.startswith("int"):
        return _signed(int(column.type.removeprefix("int")))
    if decimal is None:
        return None
    most = (Decimal(10) ** decimal[0] - 1) / (Decimal(10) ** decimal[1])
    return (Decimal(0) if unsigned else -most, most)


def _signed(bits: int) -> tuple[Decimal, Decimal]:
    return Decimal(-(2 ** (bits - 1))), Decimal(2 ** (bits - 1) - 1)


def _within(column: Column, rule: Rule) -> bool:
    bounds = _range(column)
    least, most = (Decimal(bound) for bound in rule.bounds)
    return bounds is not None and least <= bounds[0] and bounds[1] <= most


def _as_coarse(column: Column, rule: Rule) -> bool:
    decimal = column.decimal()
    return column.type.startswith("int") or (decimal is not None and decimal[1] <= int(rule.bounds[0]))


def _few_digits(column: Column, rule: Rule) -> bool:
    bounds, decimal = _range(column), column.decimal()
    if decimal is not None:
        return decimal[0] <= int(rule.bounds[0])
    return bounds is not None and len(str(abs(int(bounds[1])))) <= int(rule.bounds[0])


def _as_round(column: Column, rule: Rule) -> bool:
    size = _size(column)
    if size is None:
        size = _PLAIN_SECONDS.get(column.source_type.lower(), _MICROSECONDS)
    return size <= int(rule.bounds[0])


def _known_members(column: Column, rule: Rule) -> bool:
    if _word(column) != "enum":
        return False
    own = {one.replace("''", "'") for one in _MEMBER.findall(column.source_type)}
    return bool(own) and own <= set(rule.bounds)


def _known_letters(column: Column, rule: Rule) -> bool:
    own = column.collation.partition("_")[0].replace("utf8mb3", "utf8")
    return own == "ascii" or own == str(rule.bounds[0]).replace("utf8mb3", "utf8")


_KEPT: dict[Limit, Callable[[Column, Rule], bool]] = {
    Limit.CHARACTERS: _short,
    Limit.OCTETS: _narrow,
    Limit.WIDTH: _as_wide,
    Limit.RANGE: _within,
    Limit.SCALE: _as_coarse,
    Limit.DIGITS: _few_digits,
    Limit.SECONDS: _as_round,
    Limit.MEMBERS: _known_members,
    Limit.LETTERS: _known_letters,
    Limit.JSON: lambda column, rule: _word(column) in ("json", "jsonb"),
    Limit.TIME: lambda column, rule: _word(column) == "time" and _as_round(column, rule),
    Limit.UUID: lambda column, rule: _word(column) == "uuid",
}
