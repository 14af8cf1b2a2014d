"""Rules of the capture core that no longer story shows by itself; each is here since its loss once went
unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.capture import Capture, EmitChunk, EmitPart, Output
from migrator.core.dump import DumpPlan
from migrator.core.hold import Hold
from migrator.core.passes import FIRST, Passes
from migrator.core.touched import TouchedKeys
from migrator.errors import SourceError
from migrator.model.event import LogProgress, MarkKind, WatermarkSeen
from migrator.model.progress import Checkpoint, TableDump
from scenarios.simulation.source import SeenSet
from tests.unit.core.test_core import OTHER, SCHEMA, TABLE, asked, capture, chunk, drop_keys, position, update

NOTHING, FIRST_SEEN = SeenSet(frozenset()), SeenSet(frozenset({(1,)}))


def two_tables() -> tuple[Capture, DumpPlan]:
    plan = DumpPlan([TableDump(TABLE), TableDump(OTHER)], 10, workers=2)
    schemas = {TABLE: SCHEMA, OTHER: replace(SCHEMA, id=OTHER)}
    return Capture(Checkpoint(position(0), dumps=plan.dumps()), schemas, plan, drop_keys), plan


def with_windows() -> Capture:
    plan = DumpPlan([TableDump(TABLE)], 10, token_prefix="t-")
    return Capture(Checkpoint(position(0), dumps=plan.dumps()), {TABLE: SCHEMA}, plan, drop_keys)


def rows(outputs: list[Output]) -> list[str]:
    return [row[0] for each in outputs if isinstance(each, EmitChunk) for row in each.rows]


# -- what is remembered of delivered transactions
# --------------------------------------------------------------------


def test_a_second_restart_still_knows_what_the_first_inherited() -> None:
    plan = DumpPlan([TableDump(TABLE)], 10)
    known = Checkpoint(position(7), unconfirmed=((7,),), dumps=plan.dumps())
    core = Capture(known, {TABLE: SCHEMA}, plan, drop_keys)
    core.on_record(update(8, "a"))
    core.on_witness(NOTHING)
    assert core.checkpoint().unconfirmed == ((7,), (8,))


def test_a_large_transaction_that_is_visible_to_all_keeps_no_chunk_away() -> None:
    touched = TouchedKeys(max_keys=0)
    touched.note((1,), update(1, "a").runs)
    assert touched.must_wait(TABLE, NOTHING)
    touched.confirm([FIRST_SEEN])
    assert not touched.must_wait(TABLE, NOTHING)


def test_a_server_that_gives_an_id_again_is_not_taken_for_what_it_was() -> None:
    """1. transaction 1 is seen, its commit isn't durable; 2. the server crashes; 3. it gives another one the
    id 1."""
    core, _ = capture()
    core.on_witness(FIRST_SEEN)
    core.on_reconnect()
    core.on_record(update(1, "a"))
    assert rows(core.on_chunk(chunk(asked(core), "a", "b", high=1, final=True))) == ["b"]


def test_a_read_view_from_before_a_reconnection_bounds_nothing() -> None:
    core, _ = capture()
    core.on_witness(FIRST_SEEN)
    asked(core)
    core.on_reconnect()
    core.on_record(update(1, "a"))
    core.on_witness(FIRST_SEEN)
    assert core.checkpoint().unconfirmed == ((1,),), "the read under way may show another transaction 1"


def test_a_transaction_is_remembered_for_the_oldest_read_view_under_way() -> None:
    core, _ = two_tables()
    core.on_witness(NOTHING)
    old = asked(core)
    core.on_witness(FIRST_SEEN)
    asked(core)
    core.on_record(update(1, "a"))
    assert rows(core.on_chunk(chunk(old, "a", "b", high=1, final=True))) == ["b"]


def test_a_transaction_is_remembered_for_a_read_of_which_nothing_is_known() -> None:
    core, _ = capture()
    request = asked(core)
    core.on_witness(FIRST_SEEN)
    core.on_record(update(1, "a"))
    assert rows(core.on_chunk(chunk(request, "a", "b", high=1, final=True))) == ["b"]


# -- places in the log
# -----------------------------------------------------------------------------------------------


def test_a_log_that_repeats_its_last_transaction_is_an_error() -> None:
    core, _ = capture()
    core.on_record(update(5, "a"))
    with pytest.raises(SourceError, match="went backwards"):
        core.on_record(update(5, "a"))


def test_what_is_known_of_one_large_transaction_is_not_cut_off_another() -> None:
    core, _ = capture()
    core.on_record(update(1, "a", last=False))
    (output,) = core.on_record(update(2, "b"))
    assert isinstance(output, EmitPart)
    assert [change.after for change in output.part.changes] == [("b", "2")]


def test_progress_never_moves_the_place_back() -> None:
    core, _ = capture()
    core.on_record(LogProgress(position(5)))
    core.on_record(LogProgress(position(3)))
    assert core.checkpoint().position == position(5)


def test_a_chunk_waits_for_the_very_position_of_its_read() -> None:
    core, _ = capture()
    core.on_chunk(chunk(asked(core), "a", high=5, final=True))
    assert core.on_record(LogProgress(position(4))) == []
    assert rows(core.on_record(LogProgress(position(5)))) == ["a"]


def test_a_chunk_between_watermarks_waits_for_the_high_one() -> None:
    core = with_windows()
    request = asked(core)
    core.on_record(WatermarkSeen(request.token, MarkKind.LOW))
    assert core.on_chunk(chunk(request, "a", high=0, final=True)) == []
    assert rows(core.on_record(WatermarkSeen(request.token, MarkKind.HIGH))) == ["a"]


def test_window_and_witness_each_drop_what_they_know() -> None:
    core = with_windows()
    request = asked(core)
    core.on_record(update(1, "a"))  # before the window; its read view doesn't have it
    core.on_record(WatermarkSeen(request.token, MarkKind.LOW))
    core.on_record(update(2, "b"))  # within; its read view has it
    core.on_chunk(chunk(request, "a", "b", "c", high=2, final=True, seen=(2,)))
    assert rows(core.on_record(WatermarkSeen(request.token, MarkKind.HIGH))) == ["c"]


# -- the plan
# --------------------------------------------------------------------------------------------------------


def test_an_empty_chunk_leaves_the_place_where_it_was() -> None:
    core, plan = capture()
    core.on_chunk(chunk(asked(core), "a", "b"))
    core.on_chunk(chunk(asked(core)))
    last = asked(core)
    assert last.after == ("b",)
    core.on_chunk(chunk(last, final=True))
    (dump,) = plan.dumps()
    assert (dump.after, dump.done, dump.rows, dump.chunks) == (("b",), True, 2, 3)


def test_no_more_chunks_wait_than_one_worker_may_have_read() -> None:
    core, _ = capture()
    for key in "abc":
        core.on_chunk(chunk(asked(core), key, high=9))
    assert core.next_request() is None
    core.on_record(LogProgress(position(9)))
    assert asked(core).after == ("c",)


def test_the_end_of_a_table_is_looked_for_once() -> None:
    core, plan = capture()
    request = asked(core)
    core.on_bounded(replace(request, end=("z",), until=("m",)))
    plan.read_again(TABLE)
    plan.over(request)
    again = asked(core)
    assert (again.after, again.end) == (None, ("z",))


def test_a_batch_that_begins_admits_any_dump() -> None:
    passes = Passes([(TABLE, "r1.0")])
    assert not passes.admits(TABLE, FIRST)
    passes.begin()
    assert passes.admits(TABLE, FIRST)


def test_a_hold_counts_from_its_own_mark() -> None:
    hold = Hold(wanted="r1.0", rows=7)
    hold.begin(frozenset())
    assert (hold.name, hold.rows) == ("r1.0", 0)
