"""A dump request is untrusted, however it comes: a bad one fails by name, and nothing of it meets a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import ConnectionFailed, RequestError
from migrator.model.codecs.codec import FormatError, requests_from_json, requests_to_json
from migrator.model.requests.request import (
    MOST_KEYS,
    WHOLE,
    Doubt,
    DumpRequest,
    Pace,
    RequestBook,
    RequestState,
    Scope,
)
from migrator.model.table import TableId, TableSchema
from migrator.run.progress import Progress
from migrator.run.request_check import MOST_OPEN, CheckedRequests
from tests.unit.core.test_core import OTHER, SCHEMA, TABLE

STRANGE = TableId("public", "secrets")


class Source:
    """Notes what it is asked for, and refuses what holds the word ``bad``."""

    def __init__(self) -> None:
        self.asked: list[Scope] = []
        self.reachable = True

    def check(self, schema: TableSchema, scope: Scope) -> None:
        if not self.reachable:
            raise ConnectionFailed("gone", retryable=True)
        self.asked.append(scope)
        if "bad" in scope.predicate:
            raise RequestError("the predicate can't be asked", cause="it is bad")


def no_doubts(request: DumpRequest) -> None:
    raise RequestError("rows would be removed", where=request.id)


def checked(store: MemoryRequests, source: Source, progress: Progress | None = None) -> CheckedRequests:
    schemas = [SCHEMA, replace(SCHEMA, id=OTHER)]
    return CheckedRequests(store, schemas, source.check, no_doubts, progress or Progress())


@pytest.mark.parametrize(
    ("tables", "scope", "doubts", "says"),
    [
        ((STRANGE,), WHOLE, (), "not captured"),
        ((), WHOLE, (), "names no table"),
        ((TABLE, OTHER), Scope(keys=(("a",),)), (), "some rows of one table"),
        ((TABLE,), Scope(keys=(("a",),), predicate="1 = 1"), (), "in one way"),
        ((TABLE,), Scope(keys=(("a", "b"),)), (), "is no key of"),
        ((TABLE,), Scope(keys=((7,),)), (), "is no key of"),  # type: ignore[arg-type]
        ((TABLE,), Scope(low=(None,)), (), "is no key of"),
        ((TABLE,), Scope(low=(b"a",)), (), "is no key of"),
        ((TABLE,), Scope(keys=(("a",),) * (2 * MOST_KEYS + 1)), (), "keys"),
        ((TABLE,), Scope(predicate="bad"), (), "it is bad"),
        ((TABLE,), WHOLE, (Doubt("person", (("1",),)),), "rows would be removed"),
    ],
)
def test_a_bad_request_fails_by_name_and_the_others_go_on(
    tables: tuple[TableId, ...], scope: Scope, doubts: tuple[Doubt, ...], says: str
) -> None:
    store, source = MemoryRequests(), Source()
    store.update(lambda old: old.start(tables, scope, doubts).start((TABLE,), Scope(low=("a",))))
    book = checked(store, source).read()
    bad, good = book.requests
    assert (bad.state, good.state) == (RequestState.FAILED, RequestState.RUNNING)
    assert says in bad.reason
    assert store.read().requests == book.requests, "who asked isn't told"
    assert source.asked == ([scope] if "bad" in scope.predicate else []) + [Scope(low=("a",))]


def test_a_request_is_checked_once_and_again_when_it_was_changed() -> None:
    store, source = MemoryRequests(), Source()
    requests = checked(store, source)
    store.update(lambda old: old.start((TABLE,), Scope(predicate="a = 1")))
    assert requests.read() == requests.read()
    assert len(source.asked) == 1
    forged = replace(store.read().requests[0], scope=Scope(predicate="bad"))
    store.update(lambda old: replace(old, requests=(forged,)))
    assert requests.read().requests[0].state is RequestState.FAILED


def test_what_cannot_be_checked_now_is_not_let_through() -> None:
    store, source = MemoryRequests(), Source()
    store.update(lambda old: old.start((TABLE,), Scope(predicate="a = 1")))
    source.reachable = False
    requests = checked(store, source)
    with pytest.raises(ConnectionFailed):
        requests.read()
    source.reachable = True
    assert requests.read().running() == 1


def test_there_are_so_many_open_requests_and_no_more() -> None:
    store = MemoryRequests()
    for _ in range(MOST_OPEN + 1):
        store.update(lambda old: old.start((TABLE,), WHOLE))
    book = checked(store, Source()).read()
    assert [request.state for request in book.requests].count(RequestState.FAILED) == 1
    assert book.running() == MOST_OPEN


@pytest.mark.parametrize(
    "pace",
    [
        Pace(chunk_rows=10**9),
        Pace(chunk_rows=-1),
        Pace(delay_s=float("nan")),
        Pace(delay_s=float("inf")),
        Pace(p95_s=10.0**6),
        Pace(delay_s=10**400),
        Pace(workers=10_000),
        Pace(share=2.0),
        Pace(delay_s="1"),  # type: ignore[arg-type]
        Pace(workers=True),
    ],
)
def test_a_pace_that_the_command_line_would_not_take_holds_for_nothing(pace: Pace) -> None:
    store, progress = MemoryRequests(), Progress()
    store.update(lambda old: replace(old, pace=pace))
    requests = checked(store, Source(), progress)
    assert requests.read().pace == Pace()
    assert "the configured one holds" in progress.snapshot().warnings[0]
    good = Pace(chunk_rows=100, delay_s=1.5, share=0.5)
    store.update(lambda old: replace(old, pace=good))
    assert requests.read().pace == good
    assert progress.snapshot().warnings == ()


class Unreadable(MemoryRequests):
    def read(self) -> RequestBook:
        raise RequestError("the dump requests can't be read")


def test_a_book_that_cannot_be_understood_keeps_no_run_from_beginning() -> None:
    progress = Progress()
    requests = checked(Unreadable(), Source(), progress)
    assert requests.read() == RequestBook()
    assert "can't be read" in progress.snapshot().warnings[0]
    with pytest.raises(RequestError):
        requests.read()


@pytest.mark.parametrize(
    "change",
    [
        {"id": {"a": 1}},
        {"id": "r1; x"},
        {"generation": "1"},
        {"generation": -1},
        {"tables": 7},
        {"keys": [7]},
        {"keys": [[{}]]},
        {"predicate": ["x"]},
        {"state": "flying"},
        {"doubts": [7]},
    ],
)
def test_a_document_that_is_no_book_is_refused_as_a_whole(change: dict[str, Any]) -> None:
    document = requests_to_json(RequestBook().start((TABLE,), Scope(keys=(("a",),))))
    assert requests_from_json(document).requests
    document["requests"][0] |= change
    with pytest.raises(FormatError):
        requests_from_json(document)
