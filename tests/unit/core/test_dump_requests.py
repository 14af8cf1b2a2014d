"""Dump requests on their own: the book, what was typed, the plan of several at once, the batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.core.capture import Capture, EmitChunk, Output
from migrator.core.dump import DumpPlan
from migrator.errors import MigratorError, RequestError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.codecs.codec import FormatError, requests_from_json, requests_to_json
from migrator.model.event import LogProgress
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.reach import Reference
from migrator.model.requests.request import (
    KEPT_CLOSED,
    MOST_KEYS,
    WHOLE,
    DumpRequest,
    Pace,
    RequestBook,
    RequestState,
    Scope,
    new_token,
)
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.commands.dump_order import DumpOrder, checked
from tests.unit.core.test_core import OTHER, SCHEMA, TABLE, drop_keys, position, update

SCHEMAS = {TABLE: SCHEMA, OTHER: replace(SCHEMA, id=OTHER)}
KEYS = tuple("abcdefghij")


# -- the book
# -------------------------------------------------------------------------------------------------------


def started(*scopes: Scope) -> RequestBook:
    book = RequestBook()
    for scope in scopes:
        book = book.start((TABLE,), scope)
    return book


def test_only_steps_that_make_sense_are_taken() -> None:
    book = started(WHOLE)
    assert book.pause("r1").resume("r1") == book
    assert book.pause("r1").running() == 0
    ended = book.cancel("r1")
    for step in (RequestBook.pause, RequestBook.resume, RequestBook.cancel):
        with pytest.raises(RequestError, match="r1 is cancelled") as caught:
            step(ended, "r1")
        assert "restart r1" in caught.value.remedy
    with pytest.raises(RequestError, match="no dump request 'r7'") as caught:
        book.resume("r7")
    assert "r1" in caught.value.cause


def test_a_restart_is_another_dump_and_the_old_one_cannot_end_it() -> None:
    book = started(WHOLE).restart("r1")
    assert book.requests[0].name() == "r1.2"
    assert book.close("r1.1", RequestState.DONE) == book
    assert book.close("r1.2", RequestState.DONE).requests[0].state is RequestState.DONE
    failed = book.close("r1.2", RequestState.FAILED, "why")
    assert failed.requests[0].reason == "why"
    assert failed.restart("r1").requests[0] == DumpRequest("r1", (TABLE,), generation=3)


def test_old_closed_requests_are_forgotten_and_no_id_comes_twice() -> None:
    book = started(WHOLE)
    for number in range(2, KEPT_CLOSED + 10):
        book = book.start((TABLE,), WHOLE).cancel(f"r{number}")
    book = book.start((TABLE,), WHOLE)
    assert [book.requests[0].id, book.requests[-1].id] == ["r1", f"r{KEPT_CLOSED + 10}"]
    assert len(book.requests) == KEPT_CLOSED + 2


values = st.one_of(st.text(), st.binary())
keys = st.lists(values, min_size=1, max_size=3).map(tuple)
scopes = st.one_of(
    st.just(WHOLE),
    st.builds(lambda found: Scope(keys=tuple(found)), st.lists(keys, min_size=1, max_size=4)),
    st.builds(lambda low, high: Scope(low=low, high=high), keys, st.none() | keys),
    st.builds(lambda predicate: Scope(predicate=predicate), st.text(min_size=1)),
)
books = st.builds(
    RequestBook,
    st.lists(
        st.builds(
            DumpRequest,
            st.sampled_from(["r1", "r2"]),
            st.just((TABLE, OTHER)),
            scopes,
            st.sampled_from(RequestState),
            st.integers(1, 9),
            st.text(),
        ),
        max_size=3,
        unique_by=lambda request: request.id,
    ).map(tuple),
    st.builds(
        Pace,
        st.integers(0, 10**6),
        st.floats(0, 10),
        st.floats(0, 10),
        st.integers(0, 16),
        st.integers(0, 99),
        st.floats(0, 10),
    ),
    st.integers(0, 99),
)


@given(books)
def test_a_book_comes_back_as_it_was(book: RequestBook) -> None:
    assert requests_from_json(requests_to_json(book)) == book


def test_a_request_isnt_taken_for_one_of_the_same_number_in_another_book() -> None:
    """Of a machine with an empty state folder, or a copied one: the ledger keeps progress by the request's name."""
    ours, theirs = (RequestBook().start((TABLE,), WHOLE, token=new_token()) for _ in range(2))
    done = TableDump(TABLE, chunks=3, done=True, request=theirs.request("r1").name())
    for book in (ours, theirs.restart("r1", new_token())):
        assert requests_from_json(requests_to_json(book)) == book
        (request,) = book.requests
        plan = DumpPlan([TableDump(TABLE, done=True)], 1, requests=[done])
        plan.follow(book.requests, {})
        assert plan.open(request.name())
        assert [dump.chunks for dump in plan.requests()] == [0]
    plan = DumpPlan([TableDump(TABLE, done=True)], 1, requests=[done])
    plan.follow(theirs.requests, {})
    assert not plan.open(done.request), "the control: its own is done"
    with pytest.raises(FormatError, match="hexadecimal"):
        requests_from_json(requests_to_json(RequestBook().start((TABLE,), WHOLE, token="../x")))


# -- what was typed
# -------------------------------------------------------------------------------------------------


class Catalog:
    """A source with two tables; it takes any value."""

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        pair = (Column("a", "binary", False, "bytea"), Column("b", "string", False, "text"))
        places = (Column("a", "string", False, "text"), Column("n", "int32", False, "int"))
        known = {
            "t": SCHEMA,
            "pair": TableSchema(TableId("s", "pair"), pair, ("a", "b")),
            "place": TableSchema(TableId("s", "place"), places, ("a", "n")),
        }
        return [known[name] for name in names]

    def references(self, tables: Sequence[TableSchema]) -> list[Reference]:
        return []

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        return []

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        pass

    def adopt(self, tables: Sequence[TableId]) -> None:
        pass

    def estimated_rows(self, table: TableSchema) -> int:
        return 0

    def check_scope(self, table: TableSchema, scope: Scope) -> None:
        pass

    def doubted(self, column: Column, rule: Rule) -> str:
        return ""

    def position(self) -> Position:
        return position(0)


def typed(order: DumpOrder) -> tuple[tuple[TableId, ...], Scope]:
    return checked(order, ["t", "pair"] if order.tables != ("place",) else ["place"], Catalog())


def test_what_was_typed_becomes_tables_and_a_scope() -> None:
    pair = TableId("s", "pair")
    assert typed(DumpOrder()) == ((TABLE, pair), WHOLE)
    assert typed(DumpOrder(("t", "t"))) == ((TABLE,), WHOLE)
    assert typed(DumpOrder(("t",), low="a,b"))[1] == Scope(low=("a,b",))
    assert typed(DumpOrder(("t",), keys=("1", "2", "1")))[1] == Scope(keys=(("1",), ("2",)))
    assert typed(DumpOrder(("t",), predicate=" k > 'a' "))[1] == Scope(predicate="k > 'a'")
    wanted = Scope(low=(b"\x00\xff", "x,y"), high=(b"\x01", ""))
    backwards = Scope(low=("west", "5"), high=("east", "1"))  # for us: a database may sort it otherwise
    assert typed(DumpOrder(("place",), low="west,5", high="east,1"))[1] == backwards
    assert typed(DumpOrder(("place",), low="west,5", high="west,5"))[1].low == ("west", "5")
    assert typed(DumpOrder(("pair",), low='00ff,"x,y"', high="0x01,"))[1] == wanted


@pytest.mark.parametrize(
    ("order", "what", "where"),
    [
        (DumpOrder(("nope",)), "captures no table 'nope'", "--table nope"),
        (DumpOrder(keys=("1",)), "--key needs exactly one --table", "0 table"),
        (DumpOrder(("t", "pair"), low="1"), "--from/--to needs exactly one --table", "2 table"),
        (DumpOrder(("t",), keys=("1",), high="9"), "don't go together", "--from/--to, --key"),
        (DumpOrder(("t",), keys=("1",), predicate="x"), "don't go together", "--key, --where"),
        (DumpOrder(("pair",), keys=("00",)), "isn't a key", "--key 00"),
        (DumpOrder(("pair",), low="00,b,c"), "isn't a key", "--from 00,b,c"),
        (DumpOrder(("pair",), high="xyz,b"), "can't be a key", "--to, column a (bytea)"),
        (DumpOrder(("place",), low="west,10", high="west,9"), "ends before it begins", "--to west,9"),
        (DumpOrder(("t",), keys=("a\0b",)), "can't be a key", "column k (text)"),
        (DumpOrder(("t",), keys=tuple(map(str, range(MOST_KEYS + 1)))), "too many keys", str(MOST_KEYS + 1)),
    ],
)
def test_bad_input_is_refused_with_field_value_cause_and_remedy(
    order: DumpOrder, what: str, where: str
) -> None:
    with pytest.raises(RequestError, match=what) as caught:
        typed(order)
    assert where in caught.value.where
    assert caught.value.cause
    assert caught.value.remedy


# -- the plan
# -------------------------------------------------------------------------------------------------------


def wanted_keys(scope: Scope) -> list[str]:
    """The oracle: which keys a scope means, in the order in which they are read."""
    if scope.keys:
        return [str(key[0]) for key in scope.keys if str(key[0]) in KEYS]
    low, high = (None if key is None else str(key[0]) for key in (scope.low, scope.high))
    return [key for key in KEYS if (low is None or key >= low) and (high is None or key <= high)]


def read(request: ChunkRequest, high: int = 0, version: str = SCHEMA.version()) -> Chunk:
    """A chunk as a source with ``KEYS`` in every table answers."""
    scope = request.scope
    if scope.keys:
        found = [str(key[0]) for key in request.listed() if str(key[0]) in KEYS]
        last, final = request.listed()[-1], request.ends_list()
    else:
        after = "" if request.after is None else str(request.after[0])
        found = [key for key in wanted_keys(scope) if key > after][: request.limit_rows]
        last, final = (found[-1],) if found else None, len(found) < request.limit_rows  # type: ignore[assignment]
    rows = [(key, "old") for key in found]
    return Chunk(request, rows, len(rows), last, final, None, position(high), version)


plan_scopes = st.one_of(
    st.just(WHOLE),
    st.builds(
        lambda low, high: Scope(low=(low,), high=(high,)), st.sampled_from(KEYS), st.sampled_from(KEYS)
    ),
    st.builds(
        lambda found: Scope(keys=tuple((key,) for key in found)),
        st.lists(st.sampled_from((*KEYS, "zz")), min_size=1, max_size=6, unique=True),
    ),
)
_Step = tuple[str, int]


@given(
    st.lists(plan_scopes, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from("rrrreeegsnpucbk"), st.integers(0, 9)), max_size=120),
)
def test_every_dump_covers_its_keys_once_whatever_others_do(asked: list[Scope], story: list[_Step]) -> None:
    """Reads, emits, gives up, starts, pauses, resumes, cancels, restarts and is killed, in any order."""
    plan = DumpPlan([TableDump(TABLE), TableDump(OTHER)], 3, max_waiting=2)
    book, waiting, emitted = RequestBook(), list[Chunk](), list[tuple[str, TableId, str]]()

    def do(step: str, number: int) -> None:
        nonlocal plan, book
        if step == "r":
            request = plan.next_request()
            if request is not None:
                chunk = read(request)
                if plan.arrived(chunk):
                    waiting.append(chunk)
        elif step == "e":
            head = next((each for each in waiting if plan.is_head(each)), None)
            if head is not None:
                waiting.remove(head)
                plan.emitted(head, 0)
                emitted.extend((head.request.dump, head.request.table, row[0]) for row in head.rows)
        elif step == "g":
            plan.read_again(TABLE)
        elif step in "sn" and book.started < len(asked):
            scope = asked[book.started]
            book = book.start((TABLE, OTHER) if scope == WHOLE else (TABLE,), scope)
        elif step in "pucb" and book.requests:
            move = {
                "p": RequestBook.pause,
                "u": RequestBook.resume,
                "c": RequestBook.cancel,
                "b": RequestBook.restart,
            }
            try:
                book = move[step](book, book.requests[number % len(book.requests)].id)
            except RequestError:
                return
        elif step == "k":  # what was read and not emitted is lost
            plan = DumpPlan(plan.dumps(), 3, max_waiting=2, requests=plan.requests())
            waiting.clear()
        plan.follow(book.requests, {})
        waiting[:] = [each for each in waiting if plan.expects(each)]

    for step, number in story:
        do(step, number)
    for request in book.requests:
        if request.state is RequestState.PAUSED:
            book = book.resume(request.id)
    for _ in range(400):
        do("r", 0)
        do("e", 0)
    assert all(dump.done for dump in (*plan.dumps(), *plan.requests()))
    first = DumpRequest("", (TABLE, OTHER))
    for request in (first, *(each for each in book.requests if each.is_open())):
        name = request.name() if request.id else ""
        for table in request.tables:
            found = [key for owner, where, key in emitted if (owner, where) == (name, table)]
            others = {owner for owner, where, _ in emitted if where == table and owner}
            if not name and not found:  # left to a request for all rows
                assert any(
                    [key for owner, where, key in emitted if (owner, where) == (other, table)] == list(KEYS)
                    for other in others
                ), table
            else:
                assert found == wanted_keys(request.scope), (name, table)


def test_lanes_take_turns_and_a_paused_one_waits() -> None:
    plan = DumpPlan([TableDump(TABLE, chunks=1)], 2)
    book = RequestBook().start((TABLE,), WHOLE).start((OTHER,), WHOLE)

    def turn() -> str:
        request = plan.next_request()
        assert request is not None
        chunk = read(request)
        plan.arrived(chunk)
        plan.emitted(chunk, 0)
        return request.dump

    plan.follow(book.requests, {})
    assert [turn() for _ in range(6)] == ["r1.1", "r2.1", "", "r1.1", "r2.1", ""]
    plan.follow(book.pause("r1").requests, {})
    assert [turn() for _ in range(4)] == ["r2.1", "", "r2.1", ""]
    plan.follow(book.cancel("r2").requests, {})
    assert [dump.request for dump in plan.requests()] == ["r1.1"]
    assert [turn() for _ in range(2)] == ["r1.1", ""]


def test_a_refused_request_stays_refused_and_others_go_on() -> None:
    plan = DumpPlan([TableDump(TABLE, done=True)], 2)
    core = Capture(Checkpoint(position(0), dumps=plan.dumps()), SCHEMAS, plan, drop_keys)
    book = RequestBook().start((TABLE,), WHOLE).start((TABLE,), WHOLE)
    core.on_requests(book.requests, {})
    request = core.next_request()
    assert request is not None
    core.on_refusal(request)
    core.on_requests(book.requests, {})
    following = core.next_request()
    assert following is not None
    assert (request.dump, following.dump) == ("r1.1", "r2.1")
    assert [dump.request for dump in core.checkpoint().requests] == ["r2.1"]


# -- batches
# --------------------------------------------------------------------------------------------------------


def requested_core(*requests: Scope, checkpoint: Checkpoint | None = None) -> Capture:
    known = checkpoint or Checkpoint(position(0), dumps=(TableDump(TABLE, done=True),))
    plan = DumpPlan(known.dumps, 20, requests=known.requests)
    core = Capture(known, SCHEMAS, plan, drop_keys)
    core.on_requests(started(*requests).requests, {})
    return core


def chunk_in(core: Capture) -> list[Output]:
    request = core.next_request()
    assert request is not None
    return core.on_chunk(read(request))


def names(outputs: Sequence[Output]) -> list[str]:
    return [output.chunk.request.dump for output in outputs if isinstance(output, EmitChunk)]


def test_two_dumps_of_a_table_never_share_a_batch() -> None:
    core = requested_core(WHOLE, WHOLE)
    assert names(chunk_in(core)) == ["r1.1"]
    assert core.begins_batch()
    assert names(chunk_in(core)) == []
    assert core.wants_segment()
    assert names(core.on_segment()) == ["r2.1"]
    assert core.begins_batch()
    assert not core.wants_segment()
    core.on_segment()
    assert not core.begins_batch()


def test_a_batch_begins_between_transactions_only() -> None:
    core = requested_core(WHOLE)
    core.on_record(update(1, "a", last=False))
    assert names(chunk_in(core)) == []
    assert not core.wants_segment(), "a segment written now would not end on a boundary"
    core.on_segment()  # written for another reason
    assert names(core.on_record(LogProgress(position(1)))) == []
    assert names(core.on_record(update(1, "b", first_index=1))) == []
    assert core.wants_segment()
    assert names(core.on_segment()) == ["r1.1"]


def test_whose_rows_a_batch_holds_survives_a_restart() -> None:
    core = requested_core(Scope(keys=(("a",),)), WHOLE)
    assert names(chunk_in(core)) == ["r1.1"]
    again = requested_core(Scope(keys=(("a",),)), WHOLE, checkpoint=core.checkpoint())
    again.on_record(update(1, "b"))
    assert names(chunk_in(again)) == []
    assert again.wants_segment()
    assert names(again.on_segment()) == ["r2.1"]


def test_listed_keys_are_chunk_by_chunk_on_their_own() -> None:
    """Two texts may be one key to the source, which nobody here can tell."""
    scope = Scope(keys=(("a",), ("A",)))
    requests = [ChunkRequest(1, TABLE, after, 1, "", "r1.1", scope) for after in (None, ("a",))]
    assert [request.listed() for request in requests] == [(("a",),), (("A",),)]
    assert [request.ends_list() for request in requests] == [False, True]
    assert len({request.brings() for request in requests}) == 2


def test_a_request_error_is_one_that_commands_print() -> None:
    assert issubclass(RequestError, MigratorError)
