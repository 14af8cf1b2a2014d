"""A request that somebody makes on the live page, from its JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from migrator.errors import RequestError
from migrator.model.requests.request import Pace

START, PAUSE, RESUME, CANCEL, RESTART, PACE = "start", "pause", "resume", "cancel", "restart", "pace"
ACTS = (START, PAUSE, RESUME, CANCEL, RESTART, PACE)
"""The acts, by the names that `migrator dump` has for them."""
PACES = {one.name: int if one.type == "int" else float for one in fields(Pace)}
"""The settings of a pace, and whether each is a whole number."""
_MOST_TABLES, _MOST_REASON = 10_000, 500
_NAMES = {
    START: ("tables",),
    PAUSE: ("request",),
    RESUME: ("request",),
    CANCEL: ("request",),
    RESTART: ("request",),
    PACE: ("pace",),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: an act, and on what.

    Attributes:
        act: one of ``ACTS``.
        by: who asks, in words.
        reason: why; kept in the history.
        request: id of a dump request, for acts on one.
        tables: names of source tables to dump again, for ``start``; none: all.
        pace: settings to change, for ``pace``.
    """

    act: str
    by: str = ""
    reason: str = ""
    request: str = ""
    tables: tuple[str, ...] = ()
    pace: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a request in words; ``warning``: what else must be known, such as that the history lacks it."""

    words: str
    warning: str = ""


def asked(document: Any, by: str) -> Asked:
    """Reads what is asked for. Raises ``RequestError`` naming the field and what is wrong with it."""
    if not isinstance(document, dict):
        raise _wrong("", "it is no JSON object")
    act = document.get("act")
    if act not in ACTS:
        raise _wrong("act", f"it is none of {', '.join(ACTS)}")
    unknown = sorted(set(document) - {"act", "reason", *_NAMES[act]})
    missing = [name for name in _NAMES[act] if name not in document]
    if unknown or missing:
        raise _wrong((unknown or missing)[0], f"{act} takes {', '.join(_NAMES[act])}, and may have a reason")
    reason = document.get("reason", "")
    if not isinstance(reason, str) or len(reason) > _MOST_REASON:
        raise _wrong("reason", f"a reason is a text of at most {_MOST_REASON} characters")
    if act == START:
        return Asked(act, by, reason, tables=_tables(document["tables"]))
    if act == PACE:
        return Asked(act, by, reason, pace=_pace(document["pace"]))
    request = document["request"]
    if not isinstance(request, str) or not request:
        raise _wrong("request", "it is the id of a dump request, such as r1")
    return Asked(act, by, reason, request)


def _tables(named: Any) -> tuple[str, ...]:
    if (
        not isinstance(named, list)
        or not all(isinstance(name, str) for name in named)
        or len(named) > _MOST_TABLES
    ):
        raise _wrong("tables", "it is a list of names of source tables; an empty one stands for all")
    return tuple(named)


def _pace(settings: Any) -> tuple[tuple[str, float], ...]:
    if not isinstance(settings, Mapping) or not settings:
        raise _wrong("pace", f"it is an object with some of {', '.join(PACES)}")
    for name, value in settings.items():
        kind = PACES.get(name)
        if kind is None:
            raise _wrong(f"pace.{name}", f"there are {', '.join(PACES)}")
        if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
            raise _wrong(f"pace.{name}", f"it is {'a whole number' if kind is int else 'a number'}")
    return tuple(settings.items())


def _wrong(where: str, cause: str) -> RequestError:
    return RequestError(
        "the request can't be understood",
        where=where,
        cause=cause,
        remedy="see docs/how-to/observe/live-page.md",
    )
