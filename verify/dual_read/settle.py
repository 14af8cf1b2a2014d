"""Follows a pair of answers that differ until ``verify.dual_read.verdict`` can judge it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from verify.dual_read.places import pause
from verify.dual_read.verdict import Failure, Outcome, Read, Round, Rules, Verdict, first_verdict, verdict
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.snapshot import LedgerState, LogPlace

_FRESH_S = 0.05
_ASK_EVERY_S = 1.0
_JITTER_S = 0.03

Ledger = Callable[[], LedgerState | None]
AskPending = Callable[[LedgerState, LogPlace], Pending]


class Reads(Protocol):
    """The reads of both sides for one comparison; they may be repeated at will. Neither method raises."""

    def old(self) -> Read:
        """The old answer now."""
        ...

    def new(self) -> Read:
        """The new answer now."""
        ...


@dataclass(frozen=True, slots=True)
class Passed:
    """The answer to whether the ledger stands at or after a place; if not, why the wait ended."""

    reached: bool
    detail: str = ""


@dataclass(slots=True)
class LedgerWatch:
    """The ledger for many threads: it is read at most every 50 ms.

    Attributes:
        ledger: reads it.
        pending: whether the log holds changes of the captured tables that the ledger lacks; None where only waiting
            can tell.
    """

    ledger: Ledger
    pending: AskPending | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: LedgerState | None = None
    _seen_at: float = float("-inf")

    def now(self) -> LedgerState | None:
        """The ledger, at most a moment old."""
        with self._lock:
            if time.monotonic() - self._seen_at > _FRESH_S:
                self._seen = self.ledger()
                self._seen_at = time.monotonic()
            return self._seen

    def unfit(self) -> str:
        """Tells why the target can't be judged at all yet; empty if it can."""
        found = self.now()
        if found is None or found.checkpoint is None:
            return "the ledger is empty: nothing was applied yet"
        undone = [str(dump.table) for dump in found.checkpoint.dumps if not dump.done]
        if undone:
            return f"the dump of source table {undone[0]} is not complete"
        filling = [one.target for one in found.checkpoint.filling]
        return f"the target table {filling[0]} is being filled" if filling else ""

    def pass_by(self, upto: LogPlace, deadline: float) -> Passed:
        """Waits until the ledger has passed ``upto``, or nothing waits in the log before it."""
        asked_at, detail, stood = float("-inf"), "", None
        while True:
            found = self.now()
            if found is None:
                return Passed(False, "the ledger is empty: nothing was applied yet")
            if found.order >= upto.order:
                return Passed(True)
            if self.pending is not None and time.monotonic() - asked_at >= _ASK_EVERY_S:
                asked_at = time.monotonic()
                waiting = self.pending(found, upto)
                if waiting.answer is PendingAnswer.NO:
                    return Passed(True)
                detail = waiting.detail
                if waiting.stopped and stood == found.order:  # twice: it may just have been started again
                    return Passed(False, f"the pipeline is not running, and {detail}")
                stood = found.order
            if time.monotonic() >= deadline:
                return Passed(False, f"the ledger did not reach the old read in time; {detail}".rstrip("; "))
            pause(2 * _FRESH_S)

    def nothing_between(self, new: Read, after: Read) -> bool:
        """Returns whether the log surely holds no change of the captured tables from the new read to the last old
        one."""
        found = self.now()
        if self.pending is None or found is None or new.high is None or after.high is None:
            return False
        if found.order != new.high.order:
            return False
        return found.order >= after.high.order or self.pending(found, after.high).answer is PendingAnswer.NO


def settle(reads: Reads, old: Read, new: Read, rules: Rules, watch: LedgerWatch, deadline: float) -> Verdict:
    """The verdict about a pair of answers, reading both sides again as long as nothing is proved.

    Args:
        reads: both sides.
        old: the old answer that the application got.
        new: the new answer beside it.
        rules: of the pair of queries.
        watch: the ledger.
        deadline: on the monotonic clock; what is open then is unknown.
    """
    early = first_verdict(old, new, rules)
    if early is not None:
        return early
    unfit = watch.unfit()
    if unfit:
        return Verdict(Outcome.UNKNOWN, unfit)
    rounds: list[Round] = []
    while time.monotonic() < deadline:
        done = _round(reads, watch, deadline)
        if isinstance(done, Verdict):
            return done
        rounds = [*rounds[-rules.steady_rounds :], done]
        found = verdict(rounds, rules)
        if found is not None:
            return found
        pause(_JITTER_S)
    return Verdict(
        Outcome.UNKNOWN,
        f"the answers kept changing, or their places stayed unknown ({len(rounds)} rounds seen)",
    )


def _round(reads: Reads, watch: LedgerWatch, deadline: float) -> Round | Verdict:
    before = reads.old()
    if isinstance(before.result, Failure):
        return Verdict(Outcome.UNKNOWN, f"the old side gave no answer: {before.result.text}")
    if before.high is None:
        return Verdict(Outcome.UNKNOWN, "nobody can say where the old answer stands: no positions were given")
    passed = watch.pass_by(before.high, deadline)
    if not passed.reached:
        return Verdict(Outcome.UNKNOWN, passed.detail)
    pause(_JITTER_S)
    new = reads.new()
    if isinstance(new.result, Failure):
        return first_verdict(before, new, Rules()) or Verdict(Outcome.UNKNOWN, new.result.text)
    pause(_JITTER_S)
    after = reads.old()
    if isinstance(after.result, Failure):
        return Verdict(Outcome.UNKNOWN, f"the old side gave no answer: {after.result.text}")
    return Round(before, new, after, True, watch.nothing_between(new, after))
