"""The parts of the capture core on their own; interleavings are in tests/simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.text_codec import TextCodec, text_runs
from migrator.core.capture import Capture, EmitChunk, EmitPart
from migrator.core.dump import DumpPlan
from migrator.core.pace import next_limit
from migrator.core.touched import TouchedKeys
from migrator.errors import SourceError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.event import (
    ChangeRun,
    Key,
    LogProgress,
    Operation,
    RowChange,
    TransactionId,
    TransactionPart,
)
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import Column, TableId, TableSchema
from scenarios.simulation.source import SeenSet

TABLE, OTHER = TableId("s", "t"), TableId("s", "other")
SCHEMA = TableSchema(
    TABLE, (Column("k", "string", False, "text"), Column("v", "string", True, "text")), ("k",)
)


def position(order: int) -> Position:
    return Position(order, str(order))


def drop_keys(_: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = [row for row in rows if (row[0],) not in keys]
    return kept, len(kept)


def chunk(
    request: ChunkRequest, *keys: str, final: bool = False, high: int = 0, seen: tuple[int, ...] = ()
) -> Chunk:
    rows = [(key, "old") for key in keys]
    last = (keys[-1],) if keys else None
    ids: frozenset[TransactionId] = frozenset((number,) for number in seen)
    return Chunk(request, rows, len(rows), last, final, SeenSet(ids), position(high), SCHEMA.version())


def runs_of(*changes: RowChange) -> tuple[ChangeRun, ...]:
    return text_runs({TABLE: TextCodec(SCHEMA)}, changes)


def update(order: int, key: str, *, first_index: int = 0, last: bool = True) -> TransactionPart:
    change = RowChange(TABLE, Operation.UPDATE, (key, "old"), (key, str(order)))
    return TransactionPart((order,), position(order), 0, first_index, runs_of(change), last)


def capture(max_keys: int = 20_000) -> tuple[Capture, DumpPlan]:
    plan = DumpPlan([TableDump(TABLE)], 10)
    return Capture(
        Checkpoint(position(0), dumps=plan.dumps()), {TABLE: SCHEMA}, plan, drop_keys, max_keys
    ), plan


def asked(core: Capture) -> ChunkRequest:
    request = core.next_request()
    assert request is not None
    return request


def test_a_row_whose_event_went_by_before_the_read_began_is_dropped() -> None:
    core, _ = capture()
    core.on_record(update(1, "a"))
    outputs = core.on_chunk(chunk(asked(core), "a", "b", high=1, final=True))
    assert [(out.rows, out.dump.dropped_rows) for out in outputs if isinstance(out, EmitChunk)] == [
        ([("b", "old")], 1)
    ]


def test_the_newest_change_of_each_table_is_known_and_survives_a_restart() -> None:
    core, plan = capture()
    assert core.checkpoint().last_changes == ()
    core.on_record(update(1, "a")._replace(committed_at_us=70))
    core.on_record(LogProgress(position(5)))
    core.on_record(update(6, "b")._replace(committed_at_us=90))
    known = core.checkpoint()
    assert known.last_changes == ((TABLE, 90),)
    assert checkpoint_from_json(checkpoint_to_json(known)) == known
    again = Capture(known, {TABLE: SCHEMA}, plan, drop_keys)
    again.on_record(LogProgress(position(7)))
    assert again.checkpoint().last_changes == ((TABLE, 90),)


def test_a_row_that_has_seen_the_event_is_kept() -> None:
    core, _ = capture()
    core.on_record(update(1, "a"))
    outputs = core.on_chunk(chunk(asked(core), "a", high=1, seen=(1,)))
    assert [out.kept_rows for out in outputs if isinstance(out, EmitChunk)] == [1]


def test_a_chunk_waits_until_the_log_was_read_past_it() -> None:
    core, _ = capture()
    assert core.on_chunk(chunk(asked(core), "a", high=5, seen=(1, 2))) == []
    assert [type(out) for out in core.on_record(update(2, "z"))] == [EmitPart]
    assert [type(out) for out in core.on_record(LogProgress(position(5)))] == [EmitChunk]


def test_too_many_keys_mean_reading_the_table_again_not_guessing() -> None:
    core, plan = capture(max_keys=0)
    core.on_record(update(1, "a"))
    assert core.on_chunk(chunk(asked(core), "a", "b", high=1)) == []
    assert core.next_request() is None, "reading at once would give the same answer"
    core.on_witness(SeenSet(frozenset({(1,)})))
    again = asked(core)
    assert again.after is None
    assert [
        out.kept_rows
        for out in core.on_chunk(chunk(again, "a", high=1, seen=(1,)))
        if isinstance(out, EmitChunk)
    ]
    assert plan.dumps()[0].rows == 1


def test_inherited_transactions_keep_chunks_away_until_they_are_visible() -> None:
    plan = DumpPlan([TableDump(TABLE)], 10)
    known = Checkpoint(position(7), unconfirmed=((7,),), dumps=plan.dumps())
    core = Capture(known, {TABLE: SCHEMA}, plan, drop_keys)
    assert core.on_chunk(chunk(asked(core), "a", high=7)) == []
    core.on_witness(SeenSet(frozenset({(7,)})))
    assert core.on_chunk(chunk(asked(core), "a", high=7, seen=(7,)))
    assert core.checkpoint().unconfirmed == ()


def test_a_log_that_goes_backwards_is_an_error() -> None:
    core, _ = capture()
    core.on_record(update(5, "a"))
    with pytest.raises(SourceError, match="went backwards"):
        core.on_record(update(4, "a"))


def test_parts_read_again_after_a_cut_are_not_delivered_twice() -> None:
    core, _ = capture()
    core.on_record(update(1, "a", last=False))
    core.on_record(update(1, "b", first_index=1, last=False))
    outputs = [core.on_record(update(1, key, first_index=n, last=n == 2)) for n, key in enumerate("abc")]
    assert [len(out.part.changes) for (out,) in outputs if isinstance(out, EmitPart)] == [0, 0, 1]
    assert core.checkpoint().partial_order is None


def test_keys_are_kept_as_long_as_an_older_read_view_may_still_arrive() -> None:
    core, _ = capture()
    core.on_witness(SeenSet(frozenset()))
    request = asked(core)  # its SELECT may have begun before transaction 1 was visible
    core.on_record(update(1, "a"))
    core.on_witness(SeenSet(frozenset({(1,)})))
    outputs = core.on_chunk(chunk(request, "a", high=1))
    assert [out.kept_rows for out in outputs if isinstance(out, EmitChunk)] == [0]


@dataclass
class _Reader:
    """Reads a table of sorted keys through a plan, losing and repeating chunks as told."""

    keys: list[str]
    plan: DumpPlan

    def read(self, request: ChunkRequest) -> Chunk:
        after = str(request.after[0]) if request.after else ""
        found = [key for key in self.keys if key > after][: request.limit_rows]
        return chunk(request, *found, final=len(found) < request.limit_rows)


@given(st.sets(st.text("abcdef", min_size=1), max_size=30), st.lists(st.sampled_from("reg"), max_size=60))
def test_a_plan_covers_every_key_once_whatever_is_read_again(keys: set[str], story: list[str]) -> None:
    plan = DumpPlan([TableDump(TABLE), TableDump(OTHER)], 3, max_waiting=2)
    reader, waiting, emitted = _Reader(sorted(keys), plan), list[Chunk](), list[tuple[TableId, str]]()

    def read() -> None:
        request = plan.next_request()
        if request is not None:
            found = reader.read(request)
            if plan.arrived(found):
                waiting.append(found)

    def emit() -> None:
        head = next((each for each in waiting if plan.is_head(each)), None)
        if head is not None:
            waiting.remove(head)
            plan.emitted(head, 0)
            emitted.extend((head.request.table, row[0]) for row in head.rows)

    def give_up() -> None:
        plan.read_again(TABLE)
        waiting[:] = [each for each in waiting if each.request.table != TABLE]

    actions: dict[str, Callable[[], None]] = {"r": read, "e": emit, "g": give_up}
    for step in story:
        actions[step]()
    while not all(dump.done for dump in plan.dumps()):
        read()
        emit()
    assert emitted.count((TABLE, "")) == 0
    for table in (TABLE, OTHER):
        assert [key for where, key in emitted if where == table] == sorted(keys)


@given(st.integers(1, 10**6), st.floats(0.001, 100))
def test_chunk_size_stays_in_bounds_and_changes_gently(limit: int, elapsed_s: float) -> None:
    new = next_limit(limit, elapsed_s, target_s=0.5, least=10, most=1000)
    assert 10 <= new <= 1000
    assert new <= max(10, 2 * limit)
    assert next_limit(100, 1.0, target_s=0.5, least=10, most=1000) == 50


def test_confirming_needs_every_bound() -> None:
    touched = TouchedKeys()
    touched.note((1,), update(1, "a").runs)
    touched.confirm([SeenSet(frozenset({(1,)})), SeenSet(frozenset())])
    assert touched.unconfirmed() == ((1,),)
    touched.confirm([SeenSet(frozenset({(1,)}))])
    assert touched.unconfirmed() == ()


def test_a_chunk_in_another_row_schema_is_read_again() -> None:
    core, _ = capture()
    read = replace(chunk(asked(core), "a"), schema_version="older")
    assert core.on_chunk(read) == []
    assert asked(core).after is None


def test_chunks_read_before_a_reconnection_are_read_again() -> None:
    core, _ = capture()
    waiting = asked(core)
    assert core.on_chunk(chunk(waiting, "1", "2", high=5)) == []
    under_way = asked(core)
    core.on_reconnect()  # the server may have forgotten what these two have seen
    assert core.on_chunk(chunk(under_way, "3", high=5, final=True)) == []
    assert core.on_record(LogProgress(position(9))) == []
    again = asked(core)
    assert again.after is None
    (emitted,) = core.on_chunk(chunk(again, "1", final=True, high=9))
    assert isinstance(emitted, EmitChunk)
    assert emitted.chunk.request is again
