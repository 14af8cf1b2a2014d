"""Sessions and limits as the rules of a fence need them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from migrator.connections.states import RefusingState
from migrator.errors import CutoverError
from migrator.model.cutover.fence import OpenTransaction

TRY_S = 0.2
"""The longest wait for a lock at a time: whoever queues behind us waits no longer."""
PAUSE_S = 0.05
"""The pause between two tries, in which those who queued go on."""
Thing = TypeVar("Thing")


class BusyError(Exception):
    """A lock wasn't had in one short try; nothing was changed."""


def in_state(state: RefusingState, where: str, cause: str) -> CutoverError:
    """Returns the error for a statement that the server's state refuses, whoever asks: no right would help."""
    return CutoverError(
        state.problem_of("database"),
        where=where,
        cause=cause,
        remedy=f"{state.remedy}; then do it again",
        retryable=state.retryable,
    )


class FenceSession(Protocol):
    """One session with the server, by the login that may raise the fence.

    Every method raises ``ConnectionFailed`` where the session is lost, ``CutoverError`` for what is refused.
    """

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns all rows of one query, whose values stand at ``%s``."""

    def change(self, *statements: str | tuple[str, Sequence[Any]]) -> None:
        """Runs statements that change something: in one transaction where the engine has such, else one by one.

        Locks are waited for no longer than ``TRY_S``. Raises ``BusyError`` past that.
        """

    def close(self) -> None:
        """Ends the session, and with it what it locked."""


class Limit:
    """The time that a fence may take, and the short tries within it.

    Args:
        limit_s: from now on.
        what: is being done, for the error.
        where: the server in words.
    """

    def __init__(self, limit_s: float, what: str, where: str):
        self._until = time.monotonic() + limit_s
        self._limit_s, self._what, self._where = limit_s, what, where

    def left_s(self) -> float:
        """Returns how many seconds are left; 0 past the limit."""
        return max(0.0, self._until - time.monotonic())

    def all_of(
        self,
        things: Sequence[Thing],
        attempt: Callable[[Thing], None],
        holders: Callable[[Sequence[Thing]], Sequence[OpenTransaction]],
    ) -> None:
        """Tries all things, round after round, until every one has been done once.

        Args:
            things: what is to be done.
            attempt: does one; raises ``BusyError`` where a lock isn't had.
            holders: who holds the locks of those that are left.

        Raises ``CutoverError``, retryable, with the holders past the limit.
        """
        left = list(things)
        while left:
            left = [thing for thing in left if not _done(attempt, thing)]
            if left:
                self.pause(partial(holders, left))

    def change(
        self,
        session: FenceSession,
        *statements: str | tuple[str, Sequence[Any]],
        holders: Callable[[], Sequence[OpenTransaction]] = tuple,
    ) -> None:
        """Has a session run statements (see ``FenceSession.change``), as often as it takes. Raises as ``all_of``."""
        self.all_of([statements], lambda these: session.change(*these), lambda _: holders())

    def until(self, reached: Callable[[], bool], holders: Callable[[], Sequence[OpenTransaction]]) -> None:
        """Asks again and again until something is so. Raises as ``all_of`` does."""
        while not reached():
            self.pause(holders)

    def pause(self, holders: Callable[[], Sequence[OpenTransaction]]) -> None:
        """Lets others go on for a moment. Raises ``CutoverError`` where no time is left."""
        if self.left_s() <= 0:
            found = "; ".join(one.words() for one in holders()) or "nobody who can be seen now"
            raise CutoverError(
                f"{self._what} was waited for in vain for {self._limit_s:g} s",
                where=self._where,
                cause=f"in the way: {found}",
                remedy="wait until they have ended, or end them, and try again; or allow a longer limit",
                retryable=True,
            )
        time.sleep(min(PAUSE_S, self.left_s()))


def _done(attempt: Callable[[Thing], None], thing: Thing) -> bool:
    try:
        attempt(thing)
    except BusyError:
        return False
    return True
