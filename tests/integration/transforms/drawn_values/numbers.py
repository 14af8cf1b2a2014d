"""Functions of numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tests.integration.transforms.drawn_values.cases import (
    INTEGERS,
    UTC,
    Case,
    Refused,
    decimals,
    fits,
    of_values,
    rows,
    scaled,
)
from transforms import columns as C
from transforms import representations as R


def right_ratio(digits: int, a: Any, b: Any) -> Decimal | None:
    one, other = (fits(Fraction(value), 1 - 10**28, 10**28 - 1) for value in (a, b))
    if other == 0:
        return None
    exact = abs(Fraction(one, other)) * 10**digits
    size = int(exact + Fraction(1, 2))
    return scaled(size if (one < 0) == (other < 0) else -size, digits)


def right_cents(amount: Any) -> int:
    return fits(Fraction(amount) * 100)


def right_flag(number: Any) -> bool:
    return bool(fits(Fraction(number), 0, 1))


def right_parts(year: int, month: int, day: int, hhmm: int) -> dt.datetime:
    if not (0 <= hhmm <= 2400 and hhmm % 100 < 60):
        raise Refused
    try:
        return dt.datetime(year, month, day) + dt.timedelta(hours=hhmm // 100, minutes=hhmm % 100)
    except ValueError as error:
        raise Refused from error


def right_epoch(unit: int) -> Callable[[Any], dt.datetime]:
    """Of a number of units, of which so many are a second."""

    def right(number: Any) -> dt.datetime:
        micros = fits(Fraction(number) * Fraction(10**6, unit))
        if unit > 1 and Fraction(number).denominator != 1:
            raise Refused
        return dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=micros)

    return right


SOME_SECONDS = st.integers(-62135596800, 253402300799)
NUMBERS: Mapping[str, list[Case]] = {
    "ratio": [
        Case(
            "a decimal(38,0), b decimal(38,0)",
            partial(C.ratio, "a", "b", digits),
            rows(decimals(38, 0), decimals(30, 0)),
            of_values(partial(right_ratio, digits)),
        )
        for digits in range(7)
    ]
    + [
        Case(
            "a long, b long",
            lambda: C.ratio("a", "b", 6),
            rows(INTEGERS, INTEGERS),
            of_values(lambda a, b: right_ratio(6, a, b)),
        ),
        Case(
            "a decimal(38,12), b decimal(30,12)",
            lambda: C.ratio("a", "b", 3),
            rows(decimals(38, 12), decimals(30, 12)),
            of_values(lambda a, b: right_ratio(3, a, b)),
        ),
        Case(
            "a string, b long",
            lambda: C.ratio("a", "b", 2),
            rows(st.integers(-(10**19), 10**19).map(lambda n: f"{scaled(n, 1):f}"), INTEGERS),
            of_values(lambda a, b: right_ratio(2, Decimal(a), b)),
        ),
    ],
    "cents": [
        Case(
            f"a decimal({digits},{scale})",
            lambda: C.cents("a"),
            rows(decimals(digits, scale)),
            of_values(right_cents),
        )
        for digits, scale in ((38, 18), (20, 2), (38, 2), (9, 0), (38, 0), (38, 38))
    ]
    + [
        Case(
            "a string",
            lambda: C.cents("a"),
            rows(
                st.one_of(
                    decimals(24, 4).map(lambda n: f"{n:f}"),
                    st.integers(-(10**19), 10**19).map(lambda n: f"{scaled(n, 3):f}"),
                )
            ),
            of_values(lambda a: right_cents(Decimal(a))),
        )
    ],
    "flag": [
        Case("a decimal(38,38)", lambda: C.flag("a"), rows(decimals(38, 38)), of_values(right_flag)),
        Case(
            "a decimal(20,4)",
            lambda: C.flag("a"),
            rows(st.one_of(decimals(20, 4), st.sampled_from([Decimal(0), Decimal(1)]))),
            of_values(right_flag),
        ),
        Case(
            "a long", lambda: C.flag("a"), rows(st.one_of(INTEGERS, st.integers(0, 1))), of_values(right_flag)
        ),
    ],
    "from_parts": [
        Case(
            "a int, b int, c int, d int",
            lambda: C.from_parts("a", "b", "c", "d"),
            rows(st.integers(1, 9998), st.integers(-1, 13), st.integers(0, 32), st.integers(-70, 2500)),
            of_values(right_parts),
        ),
        Case(
            "a int, b int, c int, d decimal(6,1)",
            lambda: C.from_parts("a", "b", "c", "d"),
            rows(
                st.integers(1, 9998),
                st.integers(1, 12),
                st.integers(1, 28),
                st.integers(0, 24000).map(lambda n: scaled(n, 1)),
            ),
            of_values(lambda y, m, d, t: right_parts(y, m, d, fits(Fraction(t)))),
        ),
    ],
    "epoch": [
        Case("a long", lambda: R.epoch("a"), rows(SOME_SECONDS), of_values(right_epoch(1))),
        Case(
            "a decimal(30,9)",
            lambda: R.epoch("a"),
            rows(
                st.integers(-62135596800 * 10**9, 253402300799 * 10**9)
                .flatmap(lambda n: st.sampled_from([n, n // 1000 * 1000, n // 10**9 * 10**9]))
                .map(lambda n: scaled(n, 9))
            ),
            of_values(right_epoch(1)),
        ),
        Case(
            "a double",
            lambda: R.epoch("a"),
            rows(st.one_of(SOME_SECONDS.map(float), st.floats(-1e9, 1e9))),
            of_values(lambda number: right_epoch(1)(fits(Fraction(number)))),
        ),
        Case(
            "a long",
            lambda: R.epoch("a", "milliseconds"),
            rows(SOME_SECONDS.map(lambda n: n * 1000 + 7)),
            of_values(right_epoch(1000)),
        ),
        Case(
            "a decimal(20,2)",
            lambda: R.epoch("a", "microseconds"),
            rows(decimals(17, 2)),
            of_values(right_epoch(10**6)),
        ),
    ],
}
