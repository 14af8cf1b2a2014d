"""Limits of time for what a cut-over asks the databases: a line that falls silent must not keep a side closed.

A call that isn't answered is left behind in its thread. Whatever it does when it is answered after all may come late:
it asks, it writes a version of the record that a newer one refuses, or it moves a sequence, which goes one way only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, cast

from migrator.connections.patience import SilentError, patiently
from migrator.errors import ConnectionFailed
from migrator.model.cutover.record import Effort, Record, Side
from migrator.model.position import Position
from migrator.ports.cutover import CutoverBook, CutoverSide

SILENT_S = 10.0
_SLOW_S = 30.0
"""Seconds for what may take time: sequences wait for locks, and rows are read."""
_LASTS = {
    "compare": "the comparison of the rows that changed",
    "structure": "a look at the structure of the tables",
    "number": "moving the sequences",
}
"""Calls that may take that long, by their names in messages."""
_Result = TypeVar("_Result")


class PatientBook:
    """A ``CutoverBook`` whose calls end.

    Args:
        make: makes one with connections of its own; called again where one was left behind.
        silent_s: the longest wait for an answer.
    """

    def __init__(self, make: Callable[[], CutoverBook], silent_s: float = SILENT_S):
        self._make, self._silent_s = make, silent_s
        self._book = make()

    def read(self) -> Record | None:
        """See the port."""
        return self._called(lambda book: book.read())

    def write(self, record: Record, epoch: int) -> None:
        """See the port."""
        self._called(lambda book: book.write(record, epoch))

    def write_old(self, record: Record, epoch: int) -> None:
        """See the port."""
        self._called(lambda book: book.write_old(record, epoch))

    def bring_up(self, record: Record, epoch: int) -> None:
        """See the port."""
        self._called(lambda book: book.bring_up(record, epoch))

    def ask(self, record: Record) -> None:
        """See the port."""
        self._called(lambda book: book.ask(record))

    def last_epoch(self) -> int:
        """See the port."""
        return self._called(lambda book: book.last_epoch())

    def close(self) -> None:
        """See the port."""
        self._called(lambda book: book.close())

    def _called(self, call: Callable[[CutoverBook], _Result]) -> _Result:
        book = self._book
        try:
            return answered(lambda: call(book), self._silent_s, "a side of the cut-over", book.close)
        except ConnectionFailed as error:
            if isinstance(error.__cause__, SilentError):
                self._book = self._make()
            raise


class PatientSide:
    """A ``CutoverSide`` whose calls end.

    Args:
        side: which one it is.
        behind: does the work, with connections that no two calls share.
        silent_s: the longest wait for an answer.
    """

    def __init__(self, side: Side, behind: CutoverSide, silent_s: float = SILENT_S):
        self._name, self._behind, self._silent_s = f"the {side} side of the cut-over", behind, silent_s
        self._alone = {name: _Alone[object]() for name in _LASTS}

    def position(self) -> Position:
        """See the port."""
        return self._called(self._behind.position, self._silent_s)

    def reached(self, position: Position) -> bool:
        """See the port."""
        return self._called(lambda: self._behind.reached(position), self._silent_s)

    def passed(self) -> str:
        """See the port."""
        return self._called(self._behind.passed, self._silent_s)

    def compare(self, since: int, effort: Effort) -> int:
        """See the port.

        While everybody can write, a comparison that was left behind is this one as well: what changes meanwhile is
        compared at rest anyway. On a busy machine no comparison would come to its end in time otherwise.
        """
        limit_s = effort.limit_s + _SLOW_S
        return self._one(
            "compare", lambda: self._behind.compare(since, effort), limit_s, joins=not effort.at_rest
        )

    def structure(self) -> Mapping[str, str]:
        """See the port."""
        return self._one("structure", self._behind.structure, max(self._silent_s, _SLOW_S))

    def number(self) -> None:
        """See the port."""
        self._one("number", self._behind.number, max(self._silent_s, _SLOW_S))

    def _one(self, name: str, call: Callable[[], _Result], limit_s: float, joins: bool = False) -> _Result:
        """Makes a call that may take time, beside no other one: the next ones would make each other slower.

        One that was left behind is waited for. ``joins``: what that one returns is returned, if it returns in time.
        Raises ``ConnectionFailed`` past the limit.
        """
        alone = cast("_Alone[_Result]", self._alone[name])
        try:
            return patiently(lambda: alone.result(call, limit_s, joins), limit_s, lambda: False, lambda: None)
        except SilentError as error:
            raise ConnectionFailed(
                "a cut-over waits longer for a database than it may",
                where=self._name,
                cause=f"{_LASTS[name]} takes longer than {limit_s:g} s: this machine or a server is busy, or a line"
                " fell silent",
                remedy="wait: it goes on and is waited for; else see what keeps the machine busy, and the network",
                retryable=True,
            ) from error

    def _called(self, call: Callable[[], _Result], limit_s: float) -> _Result:
        return answered(call, limit_s, self._name)


class _Alone(Generic[_Result]):
    """Calls of one kind, of which none is made beside another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[float, _Result] | None = None

    def result(self, call: Callable[[], _Result], limit_s: float, joins: bool) -> _Result:
        """Returns what the call returns, or, if it ``joins``, what one returns that was under way.

        Raises ``SilentError`` where another one takes longer than the limit. By then whoever asked is gone: to make
        the call for nobody would keep the next ones from being made in time.
        """
        asked_s = time.monotonic()
        if not self._lock.acquire(timeout=limit_s):
            raise SilentError("another call is under way")
        try:
            if time.monotonic() - asked_s >= limit_s:
                raise SilentError("another call was under way")
            if joins and self._last is not None and self._last[0] >= asked_s:
                return self._last[1]
            result = call()
            self._last = time.monotonic(), result
            return result
        finally:
            self._lock.release()


def answered(
    call: Callable[[], _Result], limit_s: float, where: str, leave: Callable[[], None] = lambda: None
) -> _Result:
    """Returns what a call returns, and raises what it raises.

    ``leave`` closes what a call left behind has used, once it returns. Raises ``ConnectionFailed`` past the limit.
    """
    try:
        return patiently(call, limit_s, lambda: False, leave)
    except SilentError as error:
        raise ConnectionFailed(
            "a database doesn't answer",
            where=where,
            cause=f"{error}: the line to it fell silent",
            remedy="see the network between this machine and the server",
            retryable=True,
        ) from error
