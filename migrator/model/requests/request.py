"""Dump requests: what an operator asks a migration to dump again, and the book that holds all of them.

A book is one frozen document. Its methods are pure and return the next book; a ``RequestStore`` makes that durable.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from enum import Enum

from migrator.errors import RequestError
from migrator.model.event import Key
from migrator.model.table import TableId

_ID = re.compile(r"r[1-9][0-9]{0,17}")
_TOKEN = re.compile(r"[0-9a-f]{0,32}")
KEPT_CLOSED = 50
"""Closed requests that a book remembers."""
MOST_KEYS = 10_000
"""Keys that one request may list: the whole book is one document."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A choice of rows of a table: all, a key range, listed keys, or those that a predicate holds for. One kind at a
    time.

    Attributes:
        keys: listed keys.
        low, high: bounds of the key, inclusive, compared by the source in its own order; None is open.
        predicate: an SQL expression over the table's columns, evaluated by the source.
        columns: what ``keys`` are values of, where that isn't the table's key. Several rows may have each, so
            such a
            scope is for single reads, never for a dump.
    """

    keys: tuple[Key, ...] = ()
    low: Key | None = None
    high: Key | None = None
    predicate: str = ""
    columns: tuple[str, ...] = ()

    def text(self) -> str:
        """Describes the scope in a few words."""
        if self.keys:
            return f"{len(self.keys)} listed key(s)"
        if self.predicate:
            return f"where {self.predicate}"
        if self.low is None and self.high is None:
            return "all rows"
        low, high = ("open" if key is None else _key_text(key) for key in (self.low, self.high))
        return f"keys from {low} to {high}"


WHOLE = Scope()
"""Every row."""


class RequestState(Enum):
    """The state that an operator wants a request in, or in which it ended."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"


_OPEN = (RequestState.RUNNING, RequestState.PAUSED)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Target rows that a repair doesn't trust: each vanishes unless the mapping makes it of what was dumped.

    Attributes:
        target: the target table, whose mapping reads the request's tables and no others.
        keys: values of its key columns as text, as the target prints them. No row of the request's tables
            outside of
            its scope may map to one of them.
    """

    target: str
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """One request.

    Attributes:
        id: ``r1``, ``r2``, ...; never used twice.
        tables: source tables; exactly one unless ``scope`` is all rows.
        scope: which rows of them.
        state: see ``RequestState``. DONE means that the target holds it.
        generation: rises with every restart; progress of an earlier generation counts for nothing.
        reason: why it failed, or what it brought.
        doubts: target rows that this dump decides on (see ``core.hold``); none for an ordinary dump.
        token: tells it from a request of the same number in another machine's book, or in one that was begun anew:
            the target's ledger keeps progress by name. Empty in earlier versions' books.
    """

    id: str
    tables: tuple[TableId, ...]
    scope: Scope = WHOLE
    state: RequestState = RequestState.RUNNING
    generation: int = 1
    reason: str = ""
    doubts: tuple[Doubt, ...] = ()
    token: str = ""

    def is_open(self) -> bool:
        """Tells whether there is, or may be, something left to do."""
        return self.state in _OPEN

    def name(self) -> str:
        """Returns the name that tells the request's rows from those of every other dump, an earlier generation
        included."""
        return f"{self.id}.{self.generation}" + (f".{self.token}" if self.token else "")


def new_token() -> str:
    """One that no other request has."""
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class Pace:
    """Settings of how gently chunks are read; they apply to every dump, also the first, from the next chunk on.

    Attributes:
        chunk_rows: rows of a chunk; 0 leaves it to the adaptation (``CaptureLimits``).
        delay_s: how long no read begins after one ended.
        p95_s: while 95% of the latest chunk reads don't stay below this, chunks get smaller and pauses
            longer; 0: no
            such bound.
        workers: how many chunks are read at the same time; 0: ``CaptureLimits.dump_workers``.
        active_sessions: while more of them are active on the source, reading slows down; 0:
            ``CaptureLimits.max_active_sessions``.
        replica_lag_s: while a replica is further behind, the same; 0: ``CaptureLimits.max_replica_lag_s``.
        share: for which share of the time chunks may be read while others work on the source, 1: all the time; 0:
            ``CaptureLimits.dump_share``.
    """

    chunk_rows: int = 0
    delay_s: float = 0.0
    p95_s: float = 0.0
    workers: int = 0
    active_sessions: int = 0
    replica_lag_s: float = 0.0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class RequestBook:
    """All requests of a migration in the order of their start, and the pace.

    Methods raise ``RequestError`` for a request that doesn't exist or isn't in a state that allows the step.
    """

    requests: tuple[DumpRequest, ...] = ()
    pace: Pace = Pace()
    started: int = 0

    def well_formed(self) -> RequestBook:
        """Itself, if its numbers and names are ones that a book gives; whoever wrote it. Raises ``ValueError``."""
        ids = [request.id for request in self.requests]
        numbers = [self.started, *(request.generation for request in self.requests)]
        if not all(isinstance(text, str) and _ID.fullmatch(text) for text in ids) or len(set(ids)) < len(ids):
            raise ValueError("ids of requests are r1, r2, ..., each once")
        if not all(_TOKEN.fullmatch(request.token) for request in self.requests):
            raise ValueError("a request's token is of hexadecimal digits")
        if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise ValueError("the numbers of a book are whole and count from 0")
        return self

    def request(self, request_id: str) -> DumpRequest:
        """The request of that id."""
        for request in self.requests:
            if request.id == request_id:
                return request
        known = ", ".join(request.id for request in self.requests) or "none"
        raise RequestError(
            f"there is no dump request {request_id!r}",
            where=request_id,
            cause=f"known requests: {known}",
            remedy="`migrator dump list` shows all of them",
        )

    def running(self) -> int:
        """Returns how many requests run."""
        return sum(request.state is RequestState.RUNNING for request in self.requests)

    def start(
        self, tables: tuple[TableId, ...], scope: Scope, doubts: tuple[Doubt, ...] = (), token: str = ""
    ) -> RequestBook:
        """Adds a request as the last one. Closed ones beyond ``KEPT_CLOSED`` are forgotten, oldest first."""
        number = self.started + 1
        closed = [request for request in self.requests if not request.is_open()]
        forgotten = {request.id for request in closed[: max(0, len(closed) - KEPT_CLOSED)]}
        kept = tuple(request for request in self.requests if request.id not in forgotten)
        new = DumpRequest(f"r{number}", tables, scope, doubts=doubts, token=token)
        return replace(self, requests=(*kept, new), started=number)

    def behind(self, number: int) -> RequestBook:
        """Returns the book with ids behind this number: one in a lost one's place must not give its names again."""
        return self if self.started >= number else replace(self, started=number)

    def pause(self, request_id: str) -> RequestBook:
        """Pauses a request: its chunks are read no further until it is resumed."""
        return self._moved(request_id, (RequestState.RUNNING,), RequestState.PAUSED)

    def resume(self, request_id: str) -> RequestBook:
        """Resumes a request: it goes on where it was."""
        return self._moved(request_id, (RequestState.PAUSED,), RequestState.RUNNING)

    def cancel(self, request_id: str) -> RequestBook:
        """Cancels a request: it ends where it is; what was dumped stays."""
        return self._moved(request_id, _OPEN, RequestState.CANCELLED)

    def restart(self, request_id: str, token: str = "") -> RequestBook:
        """Begins a request anew, whatever became of it."""
        old = self.request(request_id)
        generation = old.generation + 1
        new = replace(old, state=RequestState.RUNNING, generation=generation, reason="", token=token)
        return self._with(new)

    def close(self, name: str, state: RequestState, reason: str = "") -> RequestBook:
        """Says what became of an open request; the same book if that generation isn't open any more.

        Args:
            name: ``DumpRequest.name``.
            state: DONE or FAILED.
            reason: why it failed, or what it brought.
        """
        found = next((one for one in self.requests if one.name() == name and one.is_open()), None)
        return self if found is None else self._with(replace(found, state=state, reason=reason))

    def _moved(self, request_id: str, allowed: tuple[RequestState, ...], state: RequestState) -> RequestBook:
        old = self.request(request_id)
        if old.state not in allowed:
            raise RequestError(
                f"dump request {request_id} is {old.state.value}",
                where=request_id,
                cause=f"only one that is {' or '.join(former.value for former in allowed)} can become {state.value}",
                remedy=f"`migrator dump restart {request_id}` begins it anew",
            )
        return self._with(replace(old, state=state))

    def _with(self, new: DumpRequest) -> RequestBook:
        return replace(self, requests=tuple(new if old.id == new.id else old for old in self.requests))


def number_of(name: str) -> int:
    """The number in a request's id, or in its ``DumpRequest.name``."""
    return int(name.partition(".")[0].removeprefix("r"))


def _key_text(key: Key) -> str:
    return ",".join(value.hex() if isinstance(value, bytes) else str(value) for value in key)
