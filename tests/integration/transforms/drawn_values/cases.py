"""Inputs of a function of the column library, and what exact arithmetic makes of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import Column

LONG = (-(2**63), 2**63 - 1)
SPACE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
UTC = dt.UTC


class Refused(Exception):
    """Raised by what tells the right value where there is none: the function must fail."""


@dataclass(frozen=True)
class Case:
    """One function over one type of columns.

    Attributes:
        schema: of the columns ``a``, ``b``, ... as Spark declares them.
        made: the function applied to them.
        inputs: rows of them.
        right: what a row must become; raises ``Refused`` where it must fail.
    """

    schema: str
    made: Callable[[], Column]
    inputs: st.SearchStrategy[tuple[Any, ...]]
    right: Callable[..., Any]


def rows(*columns: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Rows of these columns, and some of NULLs alone: what a NULL beside a wrong value becomes isn't said."""
    return st.one_of(*[st.tuples(*columns)] * 5, st.tuples(*(st.none() for _ in columns)))


def of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and NULL where any input is."""

    def right(*values: Any) -> Any:
        return None if any(value is None for value in values) else function(*values)

    return right


CODES = {"low": 1, "high ": 2, "é": 3, "O'Neil": -4, "A": 5, "a": 6}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SPECIAL = st.text(
    st.sampled_from(list(" \t\n\r\x0b\x0c\x00\x1f\x7f\x85\xa0{}\",\\'ABZaz09-|.é\u0130ß€Ã©😀NULnul")),
    max_size=9,
)
ANY_TEXT = st.one_of(TEXT, SPECIAL)
ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
INTEGERS = st.one_of(
    st.integers(*LONG), st.integers(-3, 3), st.sampled_from([*LONG, 2**31, 2**53 + 1, -(2**53) - 1, 10**18])
)


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    """All that a ``decimal(digits, scale)`` holds, of every length."""
    most = 10**digits - 1
    some = st.one_of(*(st.integers(-(10**n), 10**n) for n in range(1, digits, 3)), st.integers(-most, most))
    whole = st.integers(-(10 ** (digits - scale)) + 1, 10 ** (digits - scale) - 1).map(
        lambda n: n * 10**scale
    )
    return st.one_of(some, whole, st.sampled_from([most, -most, 0, 1])).map(lambda n: scaled(n, scale))


def scaled(number: int, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return Decimal(number).scaleb(-scale)


def fits(number: Fraction, low: int = LONG[0], high: int = LONG[1]) -> int:
    if number.denominator != 1 or not low <= number <= high:
        raise Refused
    return int(number)
