"""Check over another connection whether a MySQL or MariaDB server still works on a session's statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What a session of either server shows while it waits for bytes of ours, or for us to take its own.
_WAITS_FOR_US = ("receiving from client", "reading from net", "sending to client", "writing to net")
_SESSION = "SELECT command, state FROM information_schema.processlist WHERE id = {0:d}"


class WatchedThread:
    """``works`` for ``patience.patiently``.

    A session that waits for its client, twice in a row with no byte moved in between, has answered, and the
    answer is lost. Twice no answer to the question itself means that the server can't be reached.

    Args:
        query: runs a query over a new connection; its failures count as no answer.
        failures: errors of ``query``.
        session: the server's number of the session.
        carried: bytes that went over the session's line.
    """

    def __init__(
        self,
        query: Callable[[str], list[tuple[Any, ...]]],
        failures: tuple[type[Exception], ...],
        session: int,
        carried: Callable[[], dict[int, int]],
    ):
        self._query = query
        self._failures = failures
        self._session = session
        self._carried = carried
        self._bytes: dict[int, int] = {}
        self._idle = 0
        self._unanswered = 0

    def works(self) -> bool:
        """Tells whether the session still works on the call."""
        before, self._bytes = self._bytes, self._carried()
        if any(before.get(line, size) != size for line, size in self._bytes.items()):
            self._idle = self._unanswered = 0
            return True
        try:
            found = self._query(_SESSION.format(self._session)) if self._session else None
        except self._failures:
            found = None
        if found is None:
            self._unanswered += 1
            return self._unanswered < 2
        self._unanswered = 0
        if not found:
            return False
        command, state = (str(part or "").lower() for part in found[0])
        self._idle = self._idle + 1 if command == "sleep" or state.startswith(_WAITS_FOR_US) else 0
        return self._idle < 2
