"""The answers of SQL's logic, with a fourth one for what can't be known here: true, false, NULL, *unknown*. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Literal, TypeVar

from scenarios.rehearsal.constraints.patterns import python_pattern


class Answer(Enum):
    """The answer where there is none."""

    UNKNOWN = "unknown"


UNKNOWN: Literal[Answer.UNKNOWN] = Answer.UNKNOWN
Value = str | bool | Decimal | tuple["Value", ...] | Answer | None
PATTERNS = {"~": 0, "~*": re.IGNORECASE, "!~": 0, "!~*": re.IGNORECASE, "regexp": re.IGNORECASE,
            "rlike": re.IGNORECASE}  # fmt: skip
"""Operators that compare with a regular expression, and how they treat letters."""
_Sortable = TypeVar("_Sortable", str, Decimal)
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:[ T][\d:.]+)?")
_TRUE, _FALSE = ("t", "true"), ("f", "false")


def length_of(value: Value) -> Value:
    """The length of a text."""
    return Decimal(len(value)) if isinstance(value, str) else None if value is None else UNKNOWN


def truth(value: Value) -> bool | Answer | None:
    """A value as a condition."""
    if value is None or isinstance(value, bool | Answer):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE + _FALSE:
            return word in _TRUE
    number = _number(value)
    return UNKNOWN if number is None else number != 0


def negated(value: bool | Answer | None) -> Value:
    """NOT."""
    return not value if isinstance(value, bool) else value


def either(values: Sequence[Value], decides: bool) -> Value:
    """The conjunction, or with ``decides`` the disjunction, of SQL, where an answer may be unknown."""
    found = [truth(value) for value in values]
    if decides in found:
        return decides
    return UNKNOWN if UNKNOWN in found else None if None in found else not decides


def _number(value: Value) -> Decimal | None:
    if isinstance(value, Decimal):
        return value
    try:
        found = Decimal(value.strip()) if isinstance(value, str) else None
    except InvalidOperation:
        return None
    return None if found is None or found.is_nan() else found


def compared(left: Value, sign: str, right: Value) -> Value:
    """A comparison; of texts only for equality, for their order is their collation's."""
    if UNKNOWN in (left, right):
        return UNKNOWN
    if left is None or right is None:
        return None
    numbers = _number(left), _number(right)
    if numbers[0] is not None and numbers[1] is not None:
        return _ordered(numbers[0], sign, numbers[1])
    if isinstance(left, str) and isinstance(right, str):
        if _DAY.fullmatch(left) and _DAY.fullmatch(right):
            return _ordered(left.replace("T", " "), sign, right.replace("T", " "))
        if sign in ("=", "<>", "!="):
            return (left.rstrip(" ") == right.rstrip(" ")) is (sign == "=")
        return UNKNOWN
    truths = truth(left), truth(right)
    if isinstance(truths[0], bool) and isinstance(truths[1], bool) and sign in ("=", "<>", "!="):
        return (truths[0] is truths[1]) is (sign == "=")
    return UNKNOWN


def _ordered(left: _Sortable, sign: str, right: _Sortable) -> bool:
    return {
        "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
        "=": left == right, "<>": left != right, "!=": left != right,
    }[sign]  # fmt: skip


def member(value: Value, members: Sequence[Value]) -> Value:
    """IN, or = ANY."""
    return either([compared(value, "=", one) for one in members], True)


def matched(value: Value, sign: str, pattern: Value) -> Value:
    """A comparison with a regular expression."""
    if value is None or pattern is None:
        return None
    if not isinstance(value, str) or not isinstance(pattern, str):
        return UNKNOWN
    try:
        found = re.search(python_pattern(pattern), value, PATTERNS[sign]) is not None
    except re.error:
        return UNKNOWN
    return found is not sign.startswith("!")
