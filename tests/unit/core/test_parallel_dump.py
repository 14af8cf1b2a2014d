"""Several reads at once: whatever order they come back in, however the tables change meanwhile."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from migrator.core.capture import Capture, EmitChunk
from migrator.core.dump import DumpPlan
from migrator.errors import ConnectionFailed
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, LogProgress
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import WHOLE, RequestBook, Scope
from migrator.model.table import TableId, TableSchema
from migrator.run.capture.fair_inputs import FairInputs
from migrator.run.capture.inputs import ChunkBounded, ChunkRead, Input, Inputs, Records
from migrator.run.capture.source_threads import ChunkPump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.mutants.broken_capture import AS_THEY_COME, GROWN_RANGE_CUT
from scenarios.simulation.setup import Patch, patched
from tests.unit.core.test_core import OTHER, SCHEMA, TABLE, drop_keys, position

_Step = tuple[str, int]
MOST_STEPS = 2_000


def name(number: int) -> str:
    return f"{number:06}"


@dataclass
class World:
    """Two tables whose keys come and go, and a plan whose reads are begun, bounded and finished in any order."""

    keys: set[int]
    workers: int
    limit_rows: int
    plan: DumpPlan = field(init=False)
    tables: dict[TableId, set[int]] = field(init=False)
    touched: set[tuple[TableId, int]] = field(default_factory=set)
    """What the log tells of."""
    reading: list[ChunkRequest] = field(default_factory=list)
    waiting: list[Chunk] = field(default_factory=list)
    emitted: list[tuple[TableId, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = {TABLE: set(self.keys), OTHER: {key * 2 for key in self.keys}}
        self.plan = self.planned((TableDump(TABLE), TableDump(OTHER)))

    def planned(self, dumps: tuple[TableDump, ...]) -> DumpPlan:
        return DumpPlan(dumps, self.limit_rows, max_waiting=2, workers=self.workers)

    def rows(self, request: ChunkRequest) -> list[int]:
        top = request.top()
        return sorted(
            key
            for key in self.tables[request.table]
            if (request.after is None or name(key) > str(request.after[0]))
            and (top is None or name(key) <= str(top[0]))
        )

    # -- steps

    def ask(self, _: int) -> None:
        request = self.plan.next_request()
        if request is not None:
            self.reading.append(request)
            assert len(self.reading) <= self.workers

    def bound(self, number: int) -> None:
        unbounded = [each for each in self.reading if each.unbounded()]
        if not unbounded:
            return
        request = unbounded[number % len(unbounded)]
        found = request
        if found.end is None and self.rows(found):
            found = replace(found, end=(name(self.rows(found)[-1]),))
        # often as far as if rows had come in since
        rows = self.rows(found)[found.boundary_rows() - 1 + number % 3 * found.boundary_rows() :]
        if found.ahead and rows and (name(rows[0]),) != found.end:
            found = replace(found, until=(name(rows[0]),))
        self.reading[self.reading.index(request)] = found
        self.plan.bounded(found)

    def read(self, number: int) -> None:
        if not self.reading:
            return
        request = self.reading.pop(number % len(self.reading))
        rows = self.rows(request)[: request.limit_rows]
        last, final = request.ending(len(rows), (name(rows[-1]),) if rows else None)
        chunk = Chunk(request, rows, len(rows), last, final, None, position(0), SCHEMA.version())
        assert chunk.row_count <= self.limit_rows
        if self.plan.arrived(chunk):
            self.waiting.append(chunk)

    def emit(self, _: int) -> None:
        for chunk in list(self.waiting):
            if self.plan.is_head(chunk):
                self.waiting.remove(chunk)
                self.plan.emitted(chunk, 0)
                self.emitted += [(chunk.request.table, row) for row in chunk.rows]
                return

    def insert(self, number: int) -> None:
        self.write(number, self.tables[TABLE].add, self.tables[OTHER].add)

    def delete(self, number: int) -> None:
        self.write(number, self.tables[TABLE].discard, self.tables[OTHER].discard)

    def write(self, number: int, one, other) -> None:  # type: ignore[no-untyped-def]
        for key in range(number, number + 4):
            one(key)
            other(key)
            self.touched |= {(TABLE, key), (OTHER, key)}

    def give_up(self, _: int) -> None:
        self.plan.read_again(TABLE)
        self.waiting = [each for each in self.waiting if self.plan.expects(each)]

    def kill(self, _: int) -> None:
        self.plan = self.planned(self.plan.dumps())
        self.reading, self.waiting = [], []

    def employ(self, number: int) -> None:
        self.workers = max(len(self.reading), 1 + number % 4)
        self.plan.employ(self.workers)


STEPS = {
    "a": World.ask,
    "b": World.bound,
    "r": World.read,
    "e": World.emit,
    "i": World.insert,
    "d": World.delete,
    "g": World.give_up,
    "k": World.kill,
    "w": World.employ,
}


stories = st.tuples(
    st.sets(st.integers(0, 60), max_size=40),
    st.integers(1, 4),
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from("aaaabbbbrrreeeiidgkw"), st.integers(0, 60)), max_size=150),
)
_Story = tuple[set[int], int, int, list[_Step]]


@settings(max_examples=300)
@given(stories)
def test_every_key_that_stays_is_emitted_once_and_in_order(told: _Story) -> None:
    happens(told)


@pytest.mark.parametrize("patches", [GROWN_RANGE_CUT, AS_THEY_COME], ids=["rest left out", "order"])
def test_a_broken_plan_is_found_out(patches: tuple[Patch, ...]) -> None:
    def is_caught(told: _Story) -> bool:
        try:
            happens(told)
        except AssertionError:
            return True
        return False

    with patched(patches):
        generate = settings(max_examples=2_000, phases=[Phase.generate], database=None)
        assert find(stories, is_caught, settings=generate)


def happens(told: _Story) -> None:
    keys, workers, limit_rows, story = told
    world = World(keys, workers, limit_rows)
    stays = {(table, key) for table, held in world.tables.items() for key in held}
    for step, number in story:
        STEPS[step](world, number)
    for number in range(MOST_STEPS):
        if all(dump.done for dump in world.plan.dumps()):
            break
        for step in "abre":
            STEPS[step](world, number)
    assert all(dump.done for dump in world.plan.dumps()), "it ends"
    for table in (TABLE, OTHER):
        found = [key for where, key in world.emitted if where == table]
        assert found == sorted(set(found)), "in order, and none twice"
    assert stays - world.touched <= set(world.emitted), "a key that no event tells of was left out"


def asked(plan: DumpPlan) -> ChunkRequest:
    request = plan.next_request()
    assert request is not None
    return request


def test_tables_are_read_side_by_side_and_one_table_once_its_ends_are_known() -> None:
    plan = DumpPlan([TableDump(TABLE), TableDump(OTHER)], 10, workers=3)
    first, second = asked(plan), asked(plan)
    assert [first.table, second.table] == [TABLE, OTHER]
    assert plan.next_request() is None, "where both end is not known"
    plan.bounded(replace(first, end=("z",), until=("c",)))
    third = asked(plan)
    assert (third.table, third.after, third.end) == (TABLE, ("c",), ("z",))
    plan.bounded(replace(third, until=("f",)))
    assert plan.next_request() is None, "all workers read"


def test_one_worker_never_looks_ahead() -> None:
    plan = DumpPlan([TableDump(TABLE)], 10)
    request = asked(plan)
    assert (request.ahead, request.unbounded()) == (False, True), "only where the table ends"
    assert not replace(request, end=("z",)).unbounded()
    assert plan.next_request() is None


def test_a_predicate_is_asked_of_a_bounded_range_and_listed_keys_need_no_bounds() -> None:
    plan = DumpPlan([TableDump(TABLE, done=True)], 10)
    book = RequestBook().start((TABLE,), Scope(predicate="x")).start((TABLE,), Scope(keys=(("a",),)))
    plan.follow(book.requests, {})
    first = asked(plan)
    assert (first.ahead, replace(first, end=("z",)).unbounded()) == (True, True)
    plan.over(first)
    second = asked(plan)
    assert (second.dump, second.unbounded()) == ("r2.1", False)


def test_the_rest_of_a_grown_range_comes_before_what_lies_behind_it() -> None:
    world = World(set(range(0, 100, 10)), 2, 4)
    del world.tables[OTHER]
    world.tables[OTHER] = set()
    world.plan = DumpPlan([TableDump(TABLE)], 4, workers=2)
    for step in "abab":
        STEPS[step](world, 0)
    assert [each.until for each in world.reading] == [(name(20),), (name(50),)]
    world.tables[TABLE] |= {1, 2, 3}
    for number in (1, 0):
        world.read(number)
    world.emit(0)
    assert world.emitted[-1] == (TABLE, 3)
    world.emit(0)
    assert world.emitted[-1] == (TABLE, 3), "what was read behind the rest waits for it"
    rest = asked(world.plan)
    assert (rest.after, rest.until) == ((name(3),), (name(20),))


def test_chunks_that_come_in_the_wrong_order_go_out_in_key_order_at_once() -> None:
    plan = DumpPlan([TableDump(TABLE)], 10, workers=2)
    core = Capture(Checkpoint(position(0), dumps=plan.dumps()), {TABLE: SCHEMA}, plan, drop_keys)
    first = core.next_request()
    assert first is not None
    first = replace(first, end=("z",), until=("b",))
    core.on_bounded(first)
    second = core.next_request()
    assert second is not None

    def chunk(request: ChunkRequest, key: str, final: bool) -> Chunk:
        return Chunk(request, [(key, "v")], 1, (key,), final, None, position(0), SCHEMA.version())

    assert core.on_chunk(chunk(second, "z", True)) == []
    outputs = core.on_chunk(chunk(first, "b", False))
    assert [out.rows[0][0] for out in outputs if isinstance(out, EmitChunk)] == ["b", "z"]


def test_a_table_is_read_once_by_the_first_dump_or_by_a_request_for_all_of_its_rows() -> None:
    plan = DumpPlan((TableDump(TABLE), TableDump(OTHER, done=True)), 100, workers=2)
    book = RequestBook().start((TABLE,), WHOLE)
    plan.follow(book.requests, {})
    request = asked(plan)
    assert request.dump == "r1.1"
    assert plan.next_request() is None, "the first dump leaves the table to it"
    chunk = Chunk(request, "rows", 3, ("c",), True, None, position(0), "")
    plan.arrived(chunk)
    plan.emitted(chunk, 0)
    assert all(dump.done for dump in plan.dumps())


@pytest.mark.parametrize("given_up", [RequestBook.cancel, RequestBook.pause])
def test_the_first_dump_reads_what_a_request_left(
    given_up: Callable[[RequestBook, str], RequestBook],
) -> None:
    plan = DumpPlan((TableDump(TABLE),), 100, workers=2)
    book = RequestBook().start((TABLE,), WHOLE)
    plan.follow(book.requests, {})
    asked(plan)
    plan.follow(given_up(book, "r1").requests, {})
    assert not plan.dumps()[0].done
    assert asked(plan).dump == "", "all rows, from the first on"


def test_a_request_for_some_rows_leaves_the_first_dump_what_it_has_to_do() -> None:
    plan = DumpPlan((TableDump(TABLE),), 100)
    plan.follow(RequestBook().start((TABLE,), Scope(low=("1",))).requests, {})
    plan.employ(2)
    assert {asked(plan).dump, asked(plan).dump} == {"", "r1.1"}


def test_a_cancelled_request_frees_its_workers_only_when_they_are_done() -> None:
    plan = DumpPlan([TableDump(TABLE, done=True)], 10, workers=2)
    book = RequestBook().start((TABLE, OTHER), WHOLE)
    plan.follow(book.requests, {})
    reads = [asked(plan), asked(plan)]
    plan.follow(book.cancel("r1").start((TABLE,), WHOLE).requests, {})
    assert plan.next_request() is None
    plan.over(reads[0])
    assert asked(plan).dump == "r2.1"


def test_the_log_waits_for_one_chunk_at_most_and_nobody_is_shut_out() -> None:
    def chunk(number: int) -> ChunkBounded:
        return ChunkBounded(ChunkRequest(number, TABLE, None, 1))

    def log(number: int) -> Records:
        return Records([LogProgress(position(number))])

    inputs = FairInputs(maxsize=8)
    given: list[Input] = [chunk(1), chunk(2), chunk(3), log(1), log(2), log(3), log(4), chunk(4)]
    for item in given:
        inputs.put_nowait(item)
    assert inputs.full()
    taken = [inputs.get_nowait() for _ in given]
    assert taken == [log(1), chunk(1), log(2), chunk(2), log(3), chunk(3), log(4), chunk(4)]
    assert inputs.empty()
    for item in (log(5), log(6)):
        inputs.put_nowait(item)
    assert [inputs.get_nowait(), inputs.get_nowait()] == [log(5), log(6)]


class Cut:
    """A chunk reader whose first read after the bounds breaks; afterwards other bounds would be found."""

    def __init__(self) -> None:
        self.bounds = iter(("c", "d"))
        self.reads: list[ChunkRequest] = []

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        until: Key = (next(self.bounds),)
        return replace(request, end=("z",), until=until)

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        self.reads.append(request)
        if len(self.reads) == 1:
            raise ConnectionFailed("cut", retryable=True)
        return Chunk(request, [], 0, request.until, False, None, position(0), "")

    def close(self) -> None:
        pass


def test_a_repeated_attempt_reads_the_range_that_was_announced() -> None:
    inputs: Inputs = queue.Queue()
    reader = Cut()
    pump = ChunkPump(lambda: reader, None, inputs, Progress())  # type: ignore[arg-type,return-value]
    request = ChunkRequest(1, TABLE, None, 10, ahead=True)
    with pytest.raises(ConnectionFailed):
        list(pump.reading(request, SCHEMA, Stopping()))
    list(pump.reading(request, SCHEMA, Stopping()))
    assert [each.until for each in reader.reads] == [("c",), ("c",)]
    announced, read = inputs.get_nowait(), inputs.get_nowait()
    assert isinstance(announced, ChunkBounded)
    assert isinstance(read, ChunkRead)
    assert announced.request == read.chunk.request
    assert inputs.empty()
