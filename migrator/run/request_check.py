"""Dump requests as the leader takes them: checked as the command line checks them, whoever has written the book.

The book may be in ZooKeeper, which by default is open to whoever reaches it. A request that names other
tables, whose keys, range or predicate the source can't be asked for, that is larger than the command line
would file, or that wants target rows removed which it doesn't dump, fails by name before any of it meets the
source or the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from migrator.errors import RequestError
from migrator.model.limits import LONGEST_PAUSE_S, MOST_CHUNK_ROWS, MOST_WORKERS
from migrator.model.requests.request import (
    MOST_KEYS,
    WHOLE,
    DumpRequest,
    Pace,
    RequestBook,
    RequestState,
    Scope,
)
from migrator.model.table import TableId, TableSchema
from migrator.ports.requests import RequestStore
from migrator.run.progress import Progress

MOST_OPEN = 100
"""Requests that may be open at once: each costs at least one look at its table."""
_ABOUT = "dump requests"
_WHOLE = ("chunk_rows", "workers", "active_sessions")
DoubtsCheck = Callable[[DumpRequest], None]
ScopeCheck = Callable[[TableSchema, Scope], None]


class CheckedRequests:
    """A ``RequestStore`` whose book has no open request that wasn't checked.

    A book that can't be understood stops nothing: as long as it can't, there are no requests, and the run says so.

    Args:
        store: where requests are kept.
        schemas: the captured tables.
        scopes: asks the source whether it can read a scope; raises ``RequestError`` if not.
        doubts: raises ``RequestError`` for a request that may take right rows out of the target.
        progress: gets a warning about what was refused.
    """

    def __init__(
        self,
        store: RequestStore,
        schemas: Sequence[TableSchema],
        scopes: ScopeCheck,
        doubts: DoubtsCheck,
        progress: Progress,
    ):
        self._store = store
        self._schemas: Mapping[TableId, TableSchema] = {schema.id: schema for schema in schemas}
        self._scopes = scopes
        self._doubts = doubts
        self._progress = progress
        self._checked: dict[str, DumpRequest] = {}
        self._understood = False

    def read(self) -> RequestBook:
        """See the port; what is refused fails in the store. A first book that can't be read is an empty one."""
        try:
            book = self._store.read()
        except RequestError as error:
            if self._understood:
                raise
            self._understood = True
            self._progress.warn(_ABOUT, str(error))
            return RequestBook()
        self._understood = True
        return self._only_checked(book)

    def update(self, change: Callable[[RequestBook], RequestBook]) -> RequestBook:
        """See the port."""
        return self._only_checked(self._store.update(change))

    def _only_checked(self, book: RequestBook) -> RequestBook:
        refused = {}
        opened = [request for request in book.requests if request.is_open()]
        for number, request in enumerate(opened):
            known = self._checked.get(request.name())
            if known is not None and _same(known, request):
                continue
            try:
                self._check(request, number)
            except RequestError as error:
                refused[request.name()] = str(error)
            else:
                self._checked[request.name()] = request
        if refused:

            def closed(old: RequestBook) -> RequestBook:
                for name, reason in refused.items():
                    old = old.close(name, RequestState.FAILED, reason)
                return old

            book = closed(self._store.update(closed))
        return replace(book, pace=self._bounded(book.pace))

    def _check(self, request: DumpRequest, number: int) -> None:
        """Raises ``RequestError``; what another error says is no fault of the request."""
        if number >= MOST_OPEN:
            raise _refused(request, f"there may be {MOST_OPEN} open requests", "cancel some, then restart it")
        unknown = [table for table in request.tables if table not in self._schemas]
        if unknown or not request.tables:
            captured = ", ".join(sorted(map(str, self._schemas)))
            found = f"{unknown[0]} is not captured" if unknown else "it names no table"
            raise _refused(request, f"{found}; captured are {captured}", "name captured tables")
        scope = request.scope
        listed = len(scope.keys) + sum(len(doubt.keys) for doubt in request.doubts)
        if listed > 2 * MOST_KEYS:
            raise _refused(request, f"it lists {listed:,} keys", "start several requests")
        if scope != WHOLE:
            kinds = (
                bool(scope.keys) + bool(scope.predicate) + (scope.low is not None or scope.high is not None)
            )
            if len(request.tables) != 1 or kinds != 1 or scope.columns:
                raise _refused(
                    request, "it covers some rows of one table in one way, or all rows", "ask anew"
                )
            schema = self._schemas[request.tables[0]]
            for key in (scope.low, scope.high, *scope.keys):
                if key is not None and not _fits(key, schema):
                    raise _refused(
                        request, f"{key!r} is no key of {schema.id}", "give keys as the source prints them"
                    )
            self._scopes(schema, scope)
        if request.doubts:
            self._doubts(request)

    def _bounded(self, pace: Pace) -> Pace:
        """The pace if every number of it is one that the command line takes; else the one that is configured."""
        good = not pace_problem(pace)
        refused = (
            []
            if good
            else [
                f"the pace {pace} is refused, the configured one holds: set it anew by `migrator dump pace`"
            ]
        )
        self._progress.warn(f"{_ABOUT}: pace", *refused)
        return pace if good else Pace()


def pace_problem(pace: Pace) -> str:
    """Returns what is wrong with the first number that the command line wouldn't take; empty: nothing."""
    bounds: tuple[tuple[str, float], ...] = (
        ("chunk_rows", MOST_CHUNK_ROWS),
        ("workers", MOST_WORKERS),
        ("active_sessions", math.inf),
        ("delay_s", LONGEST_PAUSE_S),
        ("p95_s", LONGEST_PAUSE_S),
        ("replica_lag_s", math.inf),
        ("share", 1),
    )
    for name, most in bounds:
        value, kinds = getattr(pace, name), (int,) if name in _WHOLE else (int, float)
        if not _is_number(value, *kinds) or value > most:
            return f"{name} is {value!r}, and may be {'a whole number ' if name in _WHOLE else ''}from 0 to {most:g}"
    return ""


def _is_number(value: object, *kinds: type) -> bool:
    """Tells whether a pace may have the number: JSON has infinite numbers, too, and whole ones of any size."""
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value < 2**63  # type: ignore[operator]


def _fits(key: object, schema: TableSchema) -> bool:
    """Tells whether a key has a value for each column, bytes where the column is binary and text elsewhere."""
    if not isinstance(key, tuple) or len(key) != len(schema.key):
        return False
    columns = [schema.columns[place] for place in schema.key_indexes()]
    return all(
        isinstance(value, bytes if column.type == "binary" else str)
        for value, column in zip(key, columns, strict=True)
    )


def _same(known: DumpRequest, request: DumpRequest) -> bool:
    return (known.tables, known.scope, known.doubts) == (request.tables, request.scope, request.doubts)


def _refused(request: DumpRequest, cause: str, remedy: str) -> RequestError:
    return RequestError(f"dump request {request.id} is refused", where=request.id, cause=cause, remedy=remedy)
