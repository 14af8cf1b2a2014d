"""Views of the source, each followed by a view of the target whose ledger has passed it.

The next pieces of the source are read while the target's are, and more of them while the ledger is waited for: else a
target that lags by half a minute would cost half a minute for every few pieces. The target's side of a piece is read
as soon as the ledger has passed that piece's own place, so that as little as possible was written in between. Nothing
waits for a place that the ledger was seen to have passed, or that the last wait was for: a ledger never goes back, so
a place passed in one view of the target is passed in every later one.

Where the ledger stands still and nothing in the log is missing, pieces that were read meanwhile share one wait for
the highest of their places: to ask the log again for each would cost more than it gains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Generic, Protocol, TypeVar

from verify.readers.ports import Bracket
from verify.readers.snapshot import LedgerState, LogPlace

SOURCE_VIEW, TARGET_READ, CHUNK_READ = "source view", "target read", "chunk read"
"""The steps of a sweep: views of the source stand; the target's side of them is read; a chunk of one side is."""
AHEAD = 16
"""Pieces of the source read before the target's are, at most, while the target follows."""
AHEAD_WAITING = 64
"""Pieces of the source read ahead at most while the ledger is waited for: their rows rest on the disk."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The answer to whether the target stands at or after a place in the log, and how that was found.

    ``at_rest``: nobody can write on either side, so that what differs now differs for good.
    """

    reached: bool
    detail: str
    at_rest: bool = False


Wait = Callable[[LogPlace, Callable[[], LedgerState | None]], Waited]
"""Waits for a place in the log, reading the ledger by the function given."""


class Stopped(Exception):
    """The failure of another sweep has ended this one."""


class TimeIsUp(Exception):
    """The time that a verification has is over. A ``Step`` raises it; what was read by then counts."""


class Half(Protocol):
    """A piece as the source has it."""

    @property
    def bracket(self) -> Bracket:
        """The places in the log around its view."""
        ...


H = TypeVar("H", bound=Half)


@dataclass(slots=True)
class Views:
    """The positions of all views so far.

    Attributes:
        low: the log's end before the first view of the source.
        high: the log's end after the last one.
        ledger: of the last view of the target.
        waited: whether every view of the target had passed its view of the source.
    """

    low: LogPlace | None = None
    high: LogPlace = field(default_factory=lambda: LogPlace(-1, ""))
    ledger: LedgerState | None = None
    waited: Waited = field(default_factory=lambda: Waited(True, ""))

    def merge(self, other: Views) -> None:
        """Adds the positions of other views to these."""
        if other.low is not None:
            self.low = min(self.low or other.low, other.low, key=lambda place: place.order)
        self.high = max(self.high, other.high, key=lambda place: place.order)
        self.ledger = max(self.ledger, other.ledger, key=lambda state: state.order if state else -1)
        self.waited = self.waited if not self.waited.reached else other.waited


class Pairing:
    """Pairs views.

    Args:
        ledger: reads the target's ledger.
        wait: waits until the ledger has passed a place in the log.
        step: see ``verify.tables.rounds.live.Step``; called once for several pieces.
        views: gets the positions of the views.
    """

    def __init__(
        self,
        ledger: Callable[[], LedgerState | None],
        wait: Wait,
        step: Callable[[str], None],
        views: Views,
    ):
        self._ledger, self._wait, self._step = ledger, wait, step
        self._views = views
        self._waited_for: LogPlace | None = None
        self._passed = -1  # the highest order seen in the ledger
        self._idle = False
        self._ahead: _ReadAhead[Any] | None = None
        self._stopped = Event()

    def stop(self) -> None:
        """Makes another thread's sweep end soon, with ``Stopped``."""
        self._stopped.set()

    def stop_with(self, other: Pairing) -> None:
        """Ends whenever another one is stopped, or was."""
        self._stopped = other._stopped

    def _pass(self, halves: Iterator[H], settled: Callable[[H], bool], ahead: int | None = None) -> list[H]:
        """Reads both sides of all pieces; returns those that aren't settled. ``settled`` reads the target's side.

        Raises ``TimeIsUp`` between two pieces: ``settled`` was called for all pieces that count.
        """
        left: list[H] = []
        self._ahead = reading = _ReadAhead(halves, ahead or AHEAD)
        try:
            with closing(reading.batches()) as batches:  # else a failure would leave the thread reading
                for done in batches:
                    if self._stopped.is_set():
                        raise Stopped
                    brackets = [half.bracket for half in done]
                    self._seen_views(brackets)
                    highest = _highest(brackets)
                    for half in done:
                        self._await(half.bracket.high, highest)
                        if not settled(half):
                            left.append(half)
                    self._step(TARGET_READ)
        finally:
            self._ahead = None
        return left

    def _note(self, brackets: Sequence[Bracket]) -> None:
        """Takes views of the source, and waits until the target has passed them all."""
        self._seen_views(brackets)
        highest = _highest(brackets)
        self._await(highest, highest)

    def _seen_views(self, brackets: Sequence[Bracket]) -> None:
        views = self._views
        views.low = views.low or brackets[0].low
        views.high = max(views.high, _highest(brackets), key=_order)
        self._step(SOURCE_VIEW)

    def _await(self, high: LogPlace, highest: LogPlace) -> None:
        """Waits until the ledger has passed ``high``; ``highest``: of the pieces that were read by now."""
        upto = highest if self._idle else high
        known = max(self._passed, self._waited_for.order if self._waited_for else -1)
        # After one wait in vain there is no point in waiting for each of thousands of pieces.
        if not self._views.waited.reached or high.order <= known:
            return
        self._views.waited, self._waited_for = self._wait(upto, self._current), upto
        self._idle = self._passed < upto.order  # nothing but the log said that the target lacks nothing

    def _current(self) -> LedgerState | None:
        """The ledger now, for a wait; the source may be read further meanwhile."""
        if self._ahead is not None:
            self._ahead.further()
        ledger = self._ledger()
        self._saw(ledger)
        return ledger

    def _saw(self, ledger: LedgerState | None) -> None:
        if ledger is not None:
            self._passed = max(self._passed, ledger.order)

    def _view(self, ledger: LedgerState | None) -> None:
        """Takes a view of the target."""
        self._views.ledger = ledger
        self._saw(ledger)


def _order(place: LogPlace) -> int:
    return place.order


def _highest(brackets: Sequence[Bracket]) -> LogPlace:
    return max((bracket.high for bracket in brackets), key=_order)


class _ReadAhead(Generic[H]):
    """Halves that another thread reads, ``most`` ahead of those that were taken."""

    def __init__(self, halves: Iterator[H], most: int):
        self._halves, self._most = halves, most
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="source")
        self._ahead: deque[Future[H | None]] = deque()

    def batches(self) -> Generator[list[H]]:
        """Yields the halves that are read by now, at least one at a time and ``most`` at most, in their order."""
        try:
            while True:
                done: list[H] = []
                self._fill()
                while len(done) < self._most and (not done or self._ahead[0].done()):
                    half = self._ahead[0].result()
                    if half is None:
                        break
                    done.append(half)
                    self._ahead.popleft()
                    self._fill()
                if not done:
                    return
                yield done
        finally:
            self._pool.shutdown(cancel_futures=True)

    def further(self) -> None:
        """Has one more half read, if all that were asked for are read; called now and then by who waits."""
        ahead = self._ahead
        if len(ahead) < AHEAD_WAITING and all(half.done() for half in ahead):
            self._ask()

    def _fill(self) -> None:
        while len(self._ahead) < self._most:
            self._ask()

    def _ask(self) -> None:
        self._ahead.append(self._pool.submit(next, self._halves, None))
