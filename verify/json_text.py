"""JSON documents as one canonical text per value. Runs in Spark's Python workers, so it imports nothing of ours."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from decimal import Decimal
from typing import Any

_CALLS, _STACK_BYTES = 60_000, 256 * 1024**2
"""For documents nested so deep that each level takes some calls. Memory of a stack is taken as it is used."""


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
    """A document that PostgreSQL takes and Python's stack doesn't; beyond all bounds it stays as it is."""
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


def _canonical(text: str) -> str:
    try:
        document = json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=_refuse)
    except ValueError:
        return text
    return _write(document)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_write(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, Decimal):
        return _number(value)
    return json.dumps(value)


def _number(value: Decimal) -> str:
    # Only Decimal's own text is used: normalize() would round to the context's 28 digits.
    if not value:
        return "0"
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    power = int(exponent) + len(text) - len(stripped)
    return ("-" if sign else "") + stripped + (f"e{power}" if power else "")
