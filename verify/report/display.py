"""Canonical text as people read it: numbers of days become dates, and nothing moves a terminal."""

from __future__ import annotations

import datetime

_WIDTH_MAX = 60
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_INFINITE = {
    "date": (2**31 - 1, -(2**31)),
    "timestamp": (2**63 - 1, -(2**63)),
    "timestamptz": (2**63 - 1, -(2**63)),
}


def shown(kind: str, text: str | None) -> str | None:
    """A canonical text for the report; a number that is no date stays a number."""
    if text is None or kind not in _INFINITE:
        return text
    try:
        number = int(text)
        if number in _INFINITE[kind]:
            return "infinity" if number > 0 else "-infinity"
        if kind == "date":
            return datetime.date.fromordinal(number + _EPOCH_DAY).isoformat()
        moment = _EPOCH + datetime.timedelta(microseconds=number)
    except (ValueError, OverflowError):
        return text
    return moment.isoformat(sep=" ") + ("Z" if kind == "timestamptz" else "")


def on_terminal(value: str | None) -> str:
    """A value within a line: cut if it is long, quoted where it could be taken for something else."""
    if value is None:
        return "NULL"
    text = value if len(value) <= _WIDTH_MAX else value[: _WIDTH_MAX - 1] + "…"
    return repr(text) if text != text.strip() or not text.isprintable() or not text else text
