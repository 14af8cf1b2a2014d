"""JSON documents as one canonical text per value. Runs in Spark's Python workers, so it imports nothing of ours."""

from __future__ import annotations

import json
import re
import sys
import threading
from contextlib import suppress
from typing import Any

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")

_CALLS, _STACK_BYTES = 60_000, 256 * 1024**2
"""The recursion limit and the stack for deeply nested documents: each level takes some calls. A stack takes memory
only as it is used."""


def canonical_json(text: str | None) -> str | None:
    """The document with sorted keys, no spaces and exact plain numbers; text that is no JSON comes back as it is.

    Of two equal keys the last one counts, as in ``jsonb``. 1.0, 1 and 1e0 are one number; digits are never lost.
    """
    if text is None:
        return None
    try:
        return _canonical(text)
    except RecursionError:
        return _deep(text)


def _deep(text: str) -> str:
    """A document that PostgreSQL takes but Python's stack is too small for. Beyond the limits it stays as it is."""
    found: list[str] = []

    def walk() -> None:
        with suppress(RecursionError):
            found.append(_canonical(text))

    stack, calls = threading.stack_size(_STACK_BYTES), sys.getrecursionlimit()
    sys.setrecursionlimit(_CALLS)
    try:
        thread = threading.Thread(target=walk)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(calls)
    return found[0] if found else text


class _Digits(str):
    """A number as it is written: no numeric type holds every number of JSON."""


def _canonical(text: str) -> str:
    try:
        document = json.loads(text, parse_int=_Digits, parse_float=_Digits, parse_constant=_refuse)
        return _write(document)
    except ValueError:  # no JSON, or an exponent of more digits than Python reads
        return text


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_write(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, _Digits):
        return _number(value)
    return json.dumps(value)


def _number(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no number")
    sign, whole, fraction, exponent = found.groups("")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"
    stripped = digits.rstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(stripped)
    return sign + stripped + (f"e{power}" if power else "")
