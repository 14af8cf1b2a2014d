"""The two sides of a comparison as functions of the application.

An exception that such a function raises is a result too. Positions are read before and after each call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import TextClause

from verify.dual_read.answer import answer_of
from verify.dual_read.engine_side import NewEngine, OldEngine, failure_of
from verify.dual_read.places import View
from verify.dual_read.verdict import Failure, Read
from verify.readers.snapshot import LedgerState, LogPlace


@dataclass(frozen=True, slots=True)
class Positions:
    """Functions that tell where both sides stand now: a view of the source, the target's ledger."""

    source: Callable[[], View]
    ledger: Callable[[], LedgerState | None]


def _timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = ask()
    return result, time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class CallableReads:
    """Two callables. Without positions nothing can be proved about answers that differ."""

    ask_old: Callable[[], Any]
    ask_new: Callable[[], Any]
    positions: Positions | None

    def old(self) -> Read:
        """Calls the old function between two views: the answer surely contains the first, and at most the second."""
        try:
            low = self.positions.source().low if self.positions else None
            result, elapsed_s = _timed(self.ask_old)
            high = self.positions.source().high if self.positions else None
            return Read(answer_of(result), low, high, elapsed_s)
        except BaseException as error:  # also of sys.exit(): we are in a thread of our own
            return Read(failure(error), None, None, 0.0)

    def new(self) -> Read:
        """Calls the new function, and reads the ledger before and after it."""
        try:
            low = _place(self.positions.ledger()) if self.positions else None
            result, elapsed_s = _timed(self.ask_new)
            high = _place(self.positions.ledger()) if self.positions else None
            return Read(answer_of(result), low, high, elapsed_s)
        except BaseException as error:  # also of sys.exit(): we are in a thread of our own
            return Read(failure(error), None, None, 0.0)


@dataclass(frozen=True, slots=True)
class EngineReads:
    """Two queries with the same parameters, each in a read-only transaction."""

    old_side: OldEngine
    new_side: NewEngine
    old_query: TextClause
    new_query: TextClause
    parameters: Mapping[str, Any]

    def old(self) -> Read:
        """See ``OldEngine.read``."""
        return self.old_side.read(self.old_query, self.parameters)

    def new(self) -> Read:
        """See ``NewEngine.read``."""
        return self.new_side.read(self.new_query, self.parameters)


def failure(error: BaseException) -> Failure:
    """Describes what a callable raised. Its database may be down or its query wrong: nobody can tell."""
    return Failure(failure_of(error).text)


def _place(ledger: LedgerState | None) -> LogPlace | None:
    return LogPlace(ledger.order, ledger.token) if ledger else None
