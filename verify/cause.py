"""The likely cause of one unequal cell, from its two canonical texts. A hint for people, never a verdict."""

from __future__ import annotations

import unicodedata
from decimal import Context, Decimal, InvalidOperation

_UNITS = {"date": "day", "timestamp": "microsecond", "timestamptz": "microsecond"}
_HOUR_US = 3_600_000_000
_DIGITS_MAX = 200_000


def likely_cause(kind: str, mapped: str | None, target: str | None) -> str:
    """Names how two cells differ.

    Args:
        kind: the rule of the column (``verify.normalise.kind_of``).
        mapped: canonical text of the mapped value, None for NULL.
        target: canonical text of the target's value.
    """
    if mapped is None or target is None:
        return _with_null(mapped, target)
    if kind in ("integer", "numeric", "float4", "float8", "date", "timestamp", "timestamptz"):
        return _number(kind, mapped, target)
    if kind in ("text", "character"):
        return _text(mapped, target)
    return "another value"


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
            "the mapped value does not fit the column's type"
            if mapped.startswith("not exactly")
            else "another value"
        )
    if not (a.is_finite() and b.is_finite()):
        return "NaN or infinity on one side"
    if kind in ("float4", "float8"):
        return "sign of zero" if a == b else "another value"
    exact = Context(prec=_DIGITS_MAX)  # the default context would round to 28 digits
    difference = exact.abs(exact.subtract(a, b))
    last_place = Decimal(1).scaleb(-max(_scale(a), _scale(b)), exact)
    if difference == last_place:
        return f"one {_UNITS.get(kind, 'unit in the last place')}"
    if kind in ("timestamp", "timestamptz") and difference <= 26 * _HOUR_US and difference % _HOUR_US == 0:
        return f"{difference / _HOUR_US:.0f} h apart: a time zone"
    if (
        kind == "numeric"
        and _scale(a) != _scale(b)
        and (mapped.startswith(target) or target.startswith(mapped))
    ):
        return "scale: digits cut off"
    if a == -b:
        return "sign"
    return "another value"


def _scale(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def _text(mapped: str, target: str) -> str:
    if mapped.strip() == target.strip():
        return "whitespace at an end"
    if "".join(mapped.split()) == "".join(target.split()):
        return "whitespace"
    if mapped.casefold() == target.casefold():
        return "upper and lower case"
    if unicodedata.normalize("NFC", mapped) == unicodedata.normalize("NFC", target):
        return "Unicode form of the same characters"
    if mapped.startswith(target):
        return f"cut off after {len(target)} characters"
    if "\ufffd" in target or ("?" in target and "?" not in mapped):
        return "characters lost in an encoding"
    return "another value"
