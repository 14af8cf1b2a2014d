"""Numbers in JSON that MySQL's own type would round: it holds 64-bit integers and 64-bit floats, and says
nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LEAST, _MOST = -(2**63), 2**64 - 1
_MAY_BE_ROUNDED = r"[0-9][0-9.]{15,}|[0-9][eE]"
_DIGITS_AT_MOST = 4000


def check_numbers(texts: pa.ChunkedArray) -> None:
    """Refuses documents with a number that would be rounded. Raises ``pa.ArrowInvalid``."""
    for text in texts.filter(pc.match_substring_regex(texts, _MAY_BE_ROUNDED)).to_pylist():
        if text is not None and (number := _rounded(text)):
            raise pa.ArrowInvalid(f"the number {number[:60]} in JSON would be rounded to a 64-bit float")


def _rounded(text: str) -> str:
    """The first number that is rounded, or empty. What is no JSON is the server's to refuse."""
    found: list[str] = []

    def whole(digits: str) -> None:
        if len(digits) > _DIGITS_AT_MOST or not _LEAST <= int(digits) <= _MOST:
            inexact(digits)

    def inexact(digits: str) -> None:
        if not found and _loses(digits):
            found.append(digits)

    reading: Any = json.loads
    with suppress(ValueError, RecursionError):
        reading(text, parse_int=whole, parse_float=inexact)
    return found[0] if found else ""


def _loses(digits: str) -> bool:
    """Tells whether the server prints the nearest float as another number."""
    try:
        return Decimal(digits) != Decimal(repr(float(digits)))
    except ArithmeticError:  # no number of Python's, and none of the server's
        return True
