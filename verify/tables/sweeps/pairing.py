"""Views of the source, each followed by a view of the target whose ledger has passed it.

The next pieces of the source are read while the target's are. Pieces of the source read
meanwhile share one wait, for the highest of their places. Nothing waits for a place that an earlier view's ledger had
passed, or that the last wait was for: a ledger never goes back, so a place passed in one view of the target is passed
in every later one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol, TypeVar

from verify.readers.ports import Bracket
from verify.readers.snapshot import LedgerState, LogPlace

AHEAD = 16
"""Pieces of the source read before the target's are, at most."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The answer to whether the target stands at or after a place in the log, and how that was found."""

    reached: bool
    detail: str


Wait = Callable[[LogPlace, Callable[[], LedgerState | None]], Waited]
"""Waits for a place in the log, reading the ledger by the function given."""


class Stopped(Exception):
    """The failure of another sweep has ended this one."""


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
        self._passed = -1  # the highest order in the ledger of a view
        self._stopped = Event()

    def stop(self) -> None:
        """Makes another thread's sweep end soon, with ``Stopped``."""
        self._stopped.set()

    def stop_with(self, other: Pairing) -> None:
        """Ends whenever another one is stopped, or was."""
        self._stopped = other._stopped

    def _pass(self, halves: Iterator[H], settled: Callable[[H], bool], ahead: int | None = None) -> list[H]:
        """Reads both sides of all pieces; returns those that aren't settled. ``settled`` reads the target's side."""
        left: list[H] = []
        with closing(
            _read_ahead(halves, ahead or AHEAD)
        ) as batches:  # else a failure of the target would leave the thread reading
            for done in batches:
                if self._stopped.is_set():
                    raise Stopped
                self._note([half.bracket for half in done])
                left += [half for half in done if not settled(half)]
                self._step("target read")
        return left

    def _note(self, brackets: Sequence[Bracket]) -> None:
        """Takes views of the source, and waits until the target has passed them all."""
        views, high = self._views, max((bracket.high for bracket in brackets), key=lambda place: place.order)
        views.low = views.low or brackets[0].low
        views.high = max(views.high, high, key=lambda place: place.order)
        self._step("source view")
        # After one wait in vain there is no point in waiting for each of thousands of pieces.
        if views.waited.reached and high != self._waited_for and high.order > self._passed:
            views.waited, self._waited_for = self._wait(high, self._ledger), high

    def _view(self, ledger: LedgerState | None) -> None:
        """Takes a view of the target."""
        self._views.ledger = ledger
        if ledger is not None:
            self._passed = max(self._passed, ledger.order)


def _read_ahead(halves: Iterator[H], most: int) -> Generator[list[H]]:
    """Yields the halves that another thread has read by now, at least one at a time, in their order."""
    with ThreadPoolExecutor(1, thread_name_prefix="source") as pool:
        ahead: deque[Future[H | None]] = deque(pool.submit(next, halves, None) for _ in range(most))
        try:
            while True:
                done: list[H] = []
                while len(done) < most and (not done or ahead[0].done()):
                    half = ahead[0].result()
                    if half is None:
                        break
                    done.append(half)
                    ahead.popleft()
                    ahead.append(pool.submit(next, halves, None))
                if not done:
                    return
                yield done
        finally:
            pool.shutdown(cancel_futures=True)
