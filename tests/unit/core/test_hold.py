"""The hold on its own: one batch from a mark up to the last chunk of a request that decides on target rows."""

from __future__ import annotations

from dataclasses import replace

from migrator.core.capture import Capture, EmitChunk, Output
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.codecs.codec import (
    manifest_from_json,
    manifest_to_json,
    requests_from_json,
    requests_to_json,
)
from migrator.model.event import LogProgress
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import WHOLE, Doubt, RequestBook, Scope
from migrator.model.segment import Manifest
from scenarios.simulation.source import SeenSet
from tests.unit.core.test_core import SCHEMA, TABLE, chunk, drop_keys, position, update

DOUBT = (Doubt("made", (("5",),)),)
LISTED = Scope(keys=(("a",), ("b",)))
DUMPED = Checkpoint(position(0), dumps=(TableDump(TABLE, done=True),))


def holding(*requests: tuple[Scope, tuple[Doubt, ...]], checkpoint: Checkpoint = DUMPED) -> Capture:
    book = RequestBook()
    for scope, doubts in requests:
        book = book.start((TABLE,), scope, doubts)
    core = Capture(
        checkpoint, {TABLE: SCHEMA}, DumpPlan(checkpoint.dumps, 20, requests=checkpoint.requests), drop_keys
    )
    core.on_requests(book.requests, {})
    return core


def marked(core: Capture) -> ChunkRequest:
    """The request's chunk, once a segment was written for the mark."""
    assert core.next_request() is None, "its chunk is asked for before the mark"
    assert core.wants_segment()
    core.on_segment()
    assert (core.begins_batch(), core.continues()) == (True, True)
    request = core.next_request()
    assert request is not None
    return request


def emitted(outputs: list[Output]) -> list[tuple[str, ...]]:
    return [tuple(row[0] for row in each.rows) for each in outputs if isinstance(each, EmitChunk)]


def listed(request: ChunkRequest, *keys: str, high: int = 0, seen: tuple[int, ...] = ()) -> Chunk:
    return replace(chunk(request, *keys, final=True, high=high, seen=seen), last_key=request.listed()[-1])


def test_no_batch_ends_between_the_mark_and_the_last_chunk() -> None:
    core = holding((LISTED, DOUBT))
    core.on_record(update(1, "z"))
    request = marked(core)
    assert request.doubting
    core.on_record(update(2, "a"))
    core.on_segment()
    assert (core.begins_batch(), core.continues(), core.settles()) == (False, True, "")
    assert emitted(core.on_chunk(listed(request, "a", "b", high=2, seen=(1,)))) == [("b",)], "a is in the log"
    assert (core.continues(), core.settles()) == (False, "r1.1")
    assert core.wants_segment()
    core.on_segment()
    assert (core.continues(), core.settles()) == (False, "")


def test_a_chunk_that_misses_what_came_before_the_mark_is_read_again() -> None:
    """Its row would be dropped, and the event that it lost to lies in another batch: the doubt would be decided
    without either."""
    core = holding((LISTED, DOUBT))
    core.on_record(update(1, "a"))
    request = marked(core)
    assert emitted(core.on_chunk(listed(request, "a", "b", high=1))) == []
    assert core.settles() == ""
    again = core.next_request()
    assert again is not None
    assert emitted(core.on_chunk(listed(again, "a", "b", high=1, seen=(1,)))) == [("a", "b")]
    assert core.settles() == "r1.1"


def test_a_mark_lies_between_transactions() -> None:
    core = holding((LISTED, DOUBT))
    core.on_record(update(1, "a", last=False))
    assert core.next_request() is None
    core.on_segment()
    assert not core.continues()
    core.on_record(update(1, "b", first_index=1))
    core.on_segment()
    assert (core.begins_batch(), core.continues()) == (True, True)


def test_whatever_ends_the_request_ends_the_hold_without_its_doubts() -> None:
    for end in (RequestBook.cancel, RequestBook.pause, RequestBook.restart):
        core = holding((LISTED, DOUBT))
        request = marked(core)
        book = end(RequestBook().start((TABLE,), LISTED, DOUBT), "r1")
        core.on_requests(book.requests, {})
        assert (core.continues(), core.settles(), core.wants_segment()) == (False, "", True), end
        assert emitted(core.on_chunk(listed(request, "a"))) == []
        assert core.settles() == ""


def test_after_a_restart_everything_is_marked_and_read_again() -> None:
    core = holding((WHOLE, DOUBT))
    request = marked(core)
    assert emitted(core.on_chunk(chunk(request, "a", "b"))) == [("a", "b")]
    assert core.continues()
    again = holding((WHOLE, DOUBT), checkpoint=core.checkpoint())
    assert again.checkpoint().requests[0].after == ("b",), "the control: the row was emitted"
    request = marked(again)
    assert request.after is None


def test_too_much_for_one_batch_is_given_up() -> None:
    core = holding((LISTED, DOUBT))
    marked(core)
    core._hold.max_rows = 3
    for order in range(1, 4):
        core.on_record(update(order, "x"))
    assert core.given_up() == []
    core.on_record(update(4, "x"))
    assert core.given_up() == ["r1.1"]
    assert core.given_up() == []
    assert (core.continues(), core.settles(), core.next_request()) == (False, "", None)


def test_rows_of_chunks_count_like_changes() -> None:
    core = holding((LISTED, DOUBT))
    request = marked(core)
    core._hold.max_rows = 1
    assert emitted(core.on_chunk(listed(request, "a", "b"))) == [("a", "b")]
    assert core.given_up() == ["r1.1"]
    assert core.settles() == "", "what is not whole decides about nothing"


def test_another_dump_of_the_table_waits_for_the_end_of_the_hold() -> None:
    core = holding((WHOLE, ()), (LISTED, DOUBT))
    first = core.next_request()
    assert first is not None
    core.next_request()
    core.on_segment()
    assert core.continues()
    assert emitted(core.on_chunk(chunk(first, "a", final=True))) == []
    assert not core.wants_segment(), "a batch that began with it would end the held one"
    request = core.next_request()
    assert request is not None
    assert request.dump == "r2.1"
    assert emitted(core.on_chunk(listed(request, "a"))) == [("a",)]
    assert core.settles() == "r2.1"
    assert emitted(core.on_segment()) == [("a",)]
    assert core.begins_batch()


def test_listed_keys_with_doubts_are_one_chunk() -> None:
    keys = tuple((f"k{n}",) for n in range(300))
    assert len(marked(holding((Scope(keys=keys), DOUBT))).listed()) == 300


def test_doubts_come_back_from_their_documents() -> None:
    book = RequestBook().start((TABLE,), LISTED, DOUBT)
    assert requests_from_json(requests_to_json(book)) == book
    manifest = Manifest(1, 1, DUMPED, True, 0, 0, 0, (), continues=True, doubts=DOUBT)
    assert manifest_from_json(manifest_to_json(manifest)) == manifest


def test_progress_alone_places_the_chunk() -> None:
    core = holding((LISTED, DOUBT))
    request = marked(core)
    assert emitted(core.on_chunk(listed(request, "a", high=5))) == []
    assert emitted(core.on_record(LogProgress(position(5)))) == [("a",)]
    assert isinstance(request, ChunkRequest)
    assert SeenSet(frozenset()).contains((1,)) is False
