"""Happenings of a run: one line each of its log, and what a hook is told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INFO, WARNING, ERROR = "info", "warning", "error"
STARTED, ENDED, LED, TOOK_OVER = "run.started", "run.ended", "run.led", "run.took-over"
PHASE, NOTE, WARNED, WARNING_OVER, MET = (
    "run.phase",
    "run.note",
    "run.warning",
    "run.warning-over",
    "run.error",
)
LAG_BEYOND, LAG_WITHIN, LAG_UNKNOWN = "lag.beyond", "lag.within", "lag.unknown"
DIFFERENT, NOT_DIFFERENT = "rows.different", "rows.no-longer-different"
LOG_ENDANGERED, HOOK_FAILED = "source.log-endangered", "hook.failed"

EVENTS: Mapping[str, str] = {
    STARTED: "the process began",
    LED: "it leads, without having stood by",
    TOOK_OVER: "it stood by, and leads now",
    PHASE: "another phase began",
    NOTE: "it waits for something, or tries it again",
    WARNED: "something that an operator should look at",
    WARNING_OVER: "that is over",
    MET: "an error was met, got over or not",
    LAG_BEYOND: "the lag is beyond `max_lag_s`",
    LAG_WITHIN: "it is within again",
    LAG_UNKNOWN: "the source gives no answer",
    DIFFERENT: "a verification found rows that differ",
    NOT_DIFFERENT: "a later one found them equal, or repaired",
    LOG_ENDANGERED: "the source is about to give up log that is needed, or has",
    HOOK_FAILED: "the hook failed",
    ENDED: "the run ended, told to or by an error",
}
"""The ids of events, and what each says."""
HOOKED = frozenset({ENDED, DIFFERENT, LAG_BEYOND, TOOK_OVER, LOG_ENDANGERED})
"""The ids of which a hook is told."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event.

    Attributes:
        event: one of ``EVENTS``.
        words: what happened.
        level: ``info``, ``warning`` or ``error``.
        about: what it is about: a table, a server, an error's name; empty: the run.
    """

    event: str
    words: str
    level: str = INFO
    about: str = ""
