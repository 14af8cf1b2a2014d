"""The likely cause of one unequal cell, from its two canonical texts. A hint for people, never a verdict.

This module knows numbers and points in time; ``verify.tables.findings.cause_text`` knows text, binary and JSON.
"""

from __future__ import annotations

import struct
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from verify.tables.findings.cause_text import binary_cause, json_cause, text_cause

ANOTHER = "another value"
_UNITS = {"date": "day", "timestamp": "microsecond", "timestamptz": "microsecond"}
_LAST_PLACE = "unit in the last place"
_SECOND_US = 1_000_000
_HOUR_US = 3600 * _SECOND_US
_DAY_US = 24 * _HOUR_US
_ZONE_MAX_US = 26 * _HOUR_US
_DIGITS_MAX = 200_000
_MOMENT_DIGITS = 30


def likely_cause(kind: str, mapped: str | None, target: str | None) -> str:
    """Names how two cells differ.

    Args:
        kind: the rule of the column (``verify.tables.compare.normalise.kind_of``).
        mapped: canonical text of the mapped value, None for NULL.
        target: canonical text of the target's value.
    """
    try:
        return _likely_cause(kind, mapped, target)
    except (
        ArithmeticError,
        ValueError,
        RecursionError,
        MemoryError,
    ):  # numbers beyond the limits of this module
        return ANOTHER


def _likely_cause(kind: str, mapped: str | None, target: str | None) -> str:
    if mapped is None or target is None:
        return _with_null(mapped, target)
    kind = {"double": "float8", "float": "float4"}.get(kind, kind)
    if kind in ("integer", "numeric", "float4", "float8", *_UNITS):
        return _number(kind, mapped, target)
    rule = {"text": text_cause, "character": text_cause, "bytea": binary_cause, "json": json_cause}.get(kind)
    return (rule(mapped, target) if rule else "") or ANOTHER


def _with_null(mapped: str | None, target: str | None) -> str:
    side, value = ("target", mapped) if target is None else ("mapped row", target)
    if value == "":
        return f"empty text against NULL in the {side}"
    if value == "NaN":
        return f"NaN against NULL in the {side}"
    return f"NULL in the {side}"


def _number(kind: str, mapped: str, target: str) -> str:
    try:
        a, b = Decimal(mapped), Decimal(target)
    except InvalidOperation:
        return (
            "the mapped value does not fit the column's type" if mapped.startswith("not exactly") else ANOTHER
        )
    if not (a.is_finite() and b.is_finite()):
        return "NaN or infinity on one side"
    exact = Context(prec=_DIGITS_MAX)  # the default context would round to 28 digits
    if kind in ("timestamp", "timestamptz"):
        # A text may claim more digits than fit into memory; no server has such a moment.
        return ANOTHER if max(a.adjusted(), b.adjusted()) > _MOMENT_DIGITS else _moment(int(a), int(b))
    if kind in ("float4", "float8"):
        return _floating(kind, a, b)
    if a == b.copy_negate():
        return "sign"
    lost = "precision: digits lost in a 64-bit float" if _through_double(a, b) else ""
    return _scaled(kind, a, b, exact) or lost or _one_unit(kind, a, b, exact) or ANOTHER


def _moment(a: int, b: int) -> str:
    """Compares two points in time, in microseconds since 1970. Time zones are whole quarters of an hour apart."""
    difference = abs(a - b)
    if difference == 1:
        return f"one {_UNITS['timestamp']}"
    if difference <= _ZONE_MAX_US and difference % (_HOUR_US // 4) == 0:
        return f"{difference / _HOUR_US:g} h apart: a time zone"
    for unit, place in ((1000, "milliseconds"), (_SECOND_US, "seconds")):
        if difference < unit and b % unit == 0:
            return f"scale: only {place} were kept"
    return "the time of day is missing" if difference < _DAY_US and b % _DAY_US == 0 else ANOTHER


def _floating(kind: str, a: Decimal, b: Decimal) -> str:
    if a == b:
        return "sign of zero"
    if a == b.copy_negate():
        return "sign"
    return "precision: a 32-bit float" if kind == "float8" and _as_float4(float(a)) == float(b) else ANOTHER


def _as_float4(value: float) -> float | None:
    try:
        (kept,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return None
    return float(kept)


def _scaled(kind: str, a: Decimal, b: Decimal, exact: Context) -> str:
    """The target's number has fewer digits after the point, and those it has are the mapped one's.

    Zeros at the end aren't written, so its column may hold more places than its text shows.
    """
    if kind != "numeric" or _scale(a) <= _scale(b):
        return ""
    place = Decimal(1).scaleb(-_scale(b))
    if a.quantize(place, ROUND_DOWN, exact) == b:
        return "scale: digits cut off"
    rounded = (a.quantize(place, how, exact) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN))
    return "scale: rounded" if b in rounded else ""


def _one_unit(kind: str, a: Decimal, b: Decimal, exact: Context) -> str:
    last_place = Decimal(1).scaleb(-max(_scale(a), _scale(b)), exact)
    if exact.abs(exact.subtract(a, b)) != last_place:
        return ""
    return "off by one" if last_place == 1 and kind not in _UNITS else f"one {_UNITS.get(kind, _LAST_PLACE)}"


def _through_double(a: Decimal, b: Decimal) -> bool:
    """Returns whether a double makes the target's number of the mapped one, in digits or in full."""
    try:
        lossy = float(a)
        return b in (Decimal(lossy), Decimal(repr(lossy)))
    except (OverflowError, ValueError):
        return False


def _scale(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))
