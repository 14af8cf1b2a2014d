"""A writer whose sessions tell a test what they send, so that it can act just before or after a statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.targets.target_under_test import TargetUnderTest


class WatchedWriter:
    """A writer's sessions, opened anew so that each call of the driver is seen.

    Attributes:
        cut_at: the server ends the session just before so many calls of the driver from now; 0: never.
        followed: part of a statement, and what is done once after the first that has it.
    """

    def __init__(self, place: TargetUnderTest, target: Any):
        self._place = place
        self.cut_at = 0
        self.followed: tuple[str, Callable[[], None]] | None = None
        new_session = target._new_session
        target._forget()
        target._new_session = lambda: self._watched(new_session())

    def _watched(self, session: Any) -> Any:
        called, run, read = session._patiently, session.run, session.rows

        def patiently(call: Any) -> Any:
            if self.cut_at:
                self.cut_at -= 1
                if not self.cut_at:
                    self._place.end_session(session)
            return called(call)

        session._patiently = patiently
        session.run, session.rows = self._following(run), self._following(read)
        return session

    def _following(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def sent(statement: str, *more: Any) -> Any:
            answer = send(statement, *more)
            if self.followed is not None and self.followed[0] in statement:
                act, self.followed = self.followed[1], None
                act()
            return answer

        return sent
