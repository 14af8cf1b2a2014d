"""What every event log must do. A new adapter subclasses ``EventLogContract`` and says how to make one."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrator.columnar.types import arrow_schema, image_schema
from migrator.errors import EventLogError, FencedError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import FileKind, Manifest
from migrator.ports.eventlog import Batch, BatchReader, SegmentContent, SegmentWriter, TableData
from tests.contract.eventlog_content import (
    ITEM,
    NARROWER,
    WIDER,
    append_history,
    bits,
    checkpoint,
    content,
    dump_rows,
    extremes,
    images,
    inserted,
    pairs,
    race,
    read,
)

Step = Callable[[str], None]


class Crashed(Exception):
    """Raised by a step hook in place of a SIGKILL."""


def crash_at(name: str) -> Step:
    def step(reached: str) -> None:
        if reached == name:
            raise Crashed(name)

    return step


class EventLogUnderTest(Protocol):
    """One event log and the ways to open it."""

    def writer(self, epoch: int, after: int = 0, step: Step | None = None) -> SegmentWriter: ...

    def reader(self) -> BatchReader: ...

    def chunk(self, path: str) -> pa.Table: ...

    def lose_manifest(self, number: int) -> None: ...

    def lose_data(self, manifest: Manifest) -> None: ...


class EventLogContract:
    """The tests. ``make`` opens an event log of its own in an empty directory (or ignores the directory)."""

    def make(self, directory: Path) -> EventLogUnderTest:
        raise AssertionError("a subclass says how to make its event log")

    @pytest.fixture
    def log(self, tmp_path: Path) -> EventLogUnderTest:
        return self.make(tmp_path)

    # -- append and read ------------------------------------------------------------------------------------------

    def test_an_empty_log_has_no_segment_and_no_batch(self, log: EventLogUnderTest) -> None:
        assert log.reader().read(0, 10, 0) is None
        assert log.writer(1).last() is None
        assert log.reader().read(0, 10, 0) is None

    def test_what_is_appended_is_read(self, log: EventLogUnderTest) -> None:
        writer = log.writer(3)
        manifest = writer.append(
            content(7, dump_rows((1, "a"), (2, None)), images((7, 0, -1, 1, "a"), (7, 1, 1, 3, "c")))
        )
        assert (manifest.number, manifest.epoch, manifest.checkpoint) == (1, 3, checkpoint(7))
        assert writer.last() == manifest == log.writer(3).last()
        batch = read(log.reader())
        assert (batch.first, batch.last, batch.checkpoint) == (1, 1, checkpoint(7))
        assert (batch.transactions, batch.row_changes, batch.chunk_rows) == (1, 2, 2)
        assert batch.committed_at_us == 1_000_007
        ((schema, paths, rows),) = batch.chunks
        assert (schema, rows) == (ITEM, 2)
        assert [pairs(log.chunk(path)) for path in paths] == [[(1, "a"), (2, None)]]
        (delta,) = batch.deltas
        assert delta.schema == ITEM
        assert (pairs(delta.before), pairs(delta.after)) == ([(1, "a")], [(3, "c")])

    def test_dump_progress_and_partial_transactions_come_back(self, log: EventLogUnderTest) -> None:
        dump = TableDump(
            ITEM.id, after=("9", b"\x00\xff", None), done=True, rows=5, chunks=2, estimated_rows=7
        )
        given_ = Checkpoint(Position(4, "t\x00"), 5, 17, ((1, 2), (3,)), (dump,))
        log.writer(1).append(SegmentContent(given_, True, 0, 0, 0, ()))
        last = log.writer(2).last()
        assert last is not None
        assert last.checkpoint == given_ == read(log.reader()).checkpoint
        assert last.checkpoint.position.token == "t\x00"

    def test_every_type_keeps_its_extreme_values(self, log: EventLogUnderTest) -> None:
        schema, arrays = extremes()
        rows = pa.Table.from_arrays(arrays, schema=arrow_schema(schema))
        head = [pa.array(range(4), pa.int64()), pa.array([0] * 4, pa.int64()), pa.array([1] * 4, pa.int8())]
        logged = pa.Table.from_arrays([*head, *arrays], schema=image_schema(schema))
        data = TableData(schema, FileKind.CHUNK, rows), TableData(schema, FileKind.LOG, logged)
        log.writer(1).append(content(1, *data))
        batch = read(log.reader())
        assert bits(batch.deltas[0].after) == bits(rows)
        assert batch.deltas[0].after.schema.equals(rows.schema)
        assert bits(log.chunk(batch.chunks[0][1][0])) == bits(rows)
        assert bits(rows.slice(0, 3)) != bits(rows), "the comparison itself can fail"
        assert bits(pa.table({"f": [0.0]})) != bits(pa.table({"f": [-0.0]}))

    def test_rows_in_another_layout_are_refused(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        wrong = TableData(ITEM, FileKind.LOG, dump_rows((1, "a")).rows)
        with pytest.raises(EventLogError, match=r"public\.item"):
            writer.append(content(1, dump_rows((1, "a")), wrong))
        assert log.reader().read(0, 10, 0) is None
        assert writer.append(inserted(1, 1)).number == 1

    # -- numbers and fences ---------------------------------------------------------------------------------------

    def test_numbers_rise_by_one_over_restarts(self, log: EventLogUnderTest) -> None:
        numbers = [log.writer(epoch).append(inserted(epoch, epoch)).number for epoch in (1, 2, 2, 5)]
        assert numbers == [1, 2, 3, 4]

    def test_a_second_leader_fences_the_first(self, log: EventLogUnderTest) -> None:
        first = log.writer(1)
        first.append(inserted(1, 1))
        second = log.writer(2)
        with pytest.raises(FencedError, match="epoch 2"):
            first.append(inserted(2, 2))
        assert second.append(inserted(2, 3)).number == 2
        with pytest.raises(FencedError):
            first.append(inserted(3, 4))
        assert pairs(read(log.reader()).deltas[0].after) == [(1, "n1"), (3, "n3")]

    def test_a_lower_epoch_is_refused_at_the_door(self, log: EventLogUnderTest) -> None:
        log.writer(5).append(inserted(1, 1))
        with pytest.raises(FencedError, match="epoch 4"):
            log.writer(4)
        assert log.writer(5).append(inserted(2, 2)).number == 2

    def test_a_number_is_created_once(self, log: EventLogUnderTest) -> None:
        for turn in range(10):
            appends = [partial(log.writer(1).append, inserted(turn, turn)) for _ in range(2)]
            results = race(appends)
            assert results.count("FencedError") == 1
            assert [one.number for one in results if one != "FencedError"] == [turn + 1]
        assert [row[0] for row in pairs(read(log.reader()).deltas[0].after)] == list(range(10))

    def test_a_leader_that_slept_through_release_is_fenced(self, log: EventLogUnderTest) -> None:
        woken: list[int] = []

        def sleep(name: str) -> None:
            if name == "segment.synced":
                other = log.writer(1)
                woken.extend(other.append(inserted(number, number)).number for number in (1, 2))
                log.reader().release(1)

        sleeper = log.writer(1, step=sleep)
        with pytest.raises(FencedError):
            sleeper.append(inserted(1, 99))
        assert woken == [1, 2]
        assert pairs(read(log.reader(), after=1).deltas[0].after) == [(2, "n2")]
        with pytest.raises(EventLogError):
            log.reader().read(0, 10, 0)

    def test_numbering_goes_on_after_the_ledger_when_the_log_was_lost(self, log: EventLogUnderTest) -> None:
        writer = log.writer(9, after=41)
        assert log.reader().read(41, 10, 0) is None
        assert writer.append(inserted(1, 1)).number == 42
        assert read(log.reader(), after=41).first == 42
        with pytest.raises(EventLogError):
            log.reader().read(40, 10, 0)

    # -- crashes --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("step", "stored"), [("segment.data", False), ("segment.synced", False), ("segment.created", True)]
    )
    def test_a_crash_leaves_all_of_a_segment_or_nothing(
        self, log: EventLogUnderTest, step: str, stored: bool
    ) -> None:
        log.writer(1).append(inserted(1, 1))
        with pytest.raises(Crashed):
            log.writer(1, step=crash_at(step)).append(inserted(2, 2))
        last = log.writer(2).last()
        assert last is not None
        assert last.number == 1 + stored
        after = log.writer(2).append(inserted(3, 3))
        assert after.number == 2 + stored
        assert [key for key, _ in pairs(read(log.reader()).deltas[0].after)] == [
            1,
            *([2] if stored else []),
            3,
        ]

    # -- batches --------------------------------------------------------------------------------------------------

    def test_a_batch_ends_on_a_transaction_boundary(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(inserted(1, 1))
        writer.append(inserted(1, 2, ends=False))
        assert read(log.reader()).last == 1
        assert log.reader().read(1, 1000, 0) is None
        writer.append(inserted(2, 3))
        assert read(log.reader()).last == 3
        assert read(log.reader(), after=1).first == 2

    def test_a_batch_stays_below_its_rows(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        for order in range(1, 7):
            writer.append(inserted(order, 10 * order, 10 * order + 1))
        assert [read(log.reader(), 0, rows).last for rows in (1, 2, 3, 4, 5, 12, 100)] == [
            1,
            1,
            1,
            2,
            2,
            6,
            6,
        ]

    def test_a_huge_transaction_comes_whole(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(inserted(1, 1))
        for part in range(5):
            writer.append(inserted(2, 10 + part, 20 + part, ends=part == 4))
        writer.append(inserted(3, 99))
        reader = log.reader()
        assert read(reader, 0, 3).last == 1
        batch = read(reader, 1, 3)
        assert (batch.first, batch.last, batch.row_changes, batch.transactions) == (2, 6, 10, 1)
        assert read(reader, 6, 3).last == 7

    def test_progress_without_rows_is_a_batch(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(content(1))
        writer.append(content(2, images()))
        batch = read(log.reader())
        assert (batch.last, batch.chunks, batch.deltas, batch.checkpoint) == (2, (), (), checkpoint(2))
        assert batch.tables() == set()

    def test_reading_waits_for_a_writer(self, log: EventLogUnderTest) -> None:
        writer, reader = log.writer(1), log.reader()
        started = threading.Event()
        found: list[Batch | None] = []

        def wait() -> None:
            started.set()
            found.append(reader.read(0, 10, 30))

        thread = threading.Thread(target=wait)
        thread.start()
        started.wait(10)
        writer.append(inserted(1, 1, ends=False))
        writer.append(inserted(1, 2))
        thread.join(20)
        assert [batch.last for batch in found if batch] == [2]

    def test_images_are_netted_over_segments(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(content(1, images((1, 0, 1, 1, "a"), (1, 1, -1, 2, "old"), (1, 1, 1, 2, "mid"))))
        writer.append(content(2, images((2, 0, -1, 1, "a"), (2, 1, -1, 2, "mid"), (2, 1, 1, 3, "new"))))
        (delta,) = read(log.reader()).deltas
        assert (pairs(delta.before), pairs(delta.after)) == ([(2, "old")], [(3, "new")])

    def test_with_dump_rows_of_the_table_every_before_image_counts(self, log: EventLogUnderTest) -> None:
        """Inserted, dumped and deleted within one batch: first and last image alone would leave the dump row."""
        writer = log.writer(1)
        writer.append(content(1, images((1, 0, 1, 7, "a")), dump_rows((7, "a"))))
        writer.append(content(2, images((2, 0, -1, 7, "a"), (2, 0, 1, 7, "b"))))
        writer.append(content(3, images((3, 0, -1, 7, "b"))))
        writer.append(content(4, images((4, 0, 1, 7, "c"), (4, 1, -1, 7, "c"))))
        found = [read(log.reader(), after, rows) for after, rows in ((0, 4), (0, 100), (3, 100))]
        assert [pairs(batch.deltas[0].before) for batch in found] == [
            [(7, "a")],
            [(7, "a"), (7, "b"), (7, "c")],
            [],
        ]

    def test_what_came_before_a_table_was_emptied_is_forgotten(self, log: EventLogUnderTest) -> None:
        """Dump rows and images, also of the segments before; what comes after it stays, dump rows too."""
        writer = log.writer(1)
        writer.append(content(1, dump_rows((1, "a"), (2, "b"))))
        writer.append(content(2, images((2, 0, -1, 1, "a"), (2, 0, 1, 1, "c"))))
        writer.append(content(3, images((3, 0, 1, 3, "x"), (3, 1, 0, None, None), (3, 2, 1, 4, "d"))))
        writer.append(content(4, dump_rows((4, "d")), images((4, 0, -1, 4, "d"))))
        reader = log.reader()
        batch = read(reader)
        (delta,) = batch.deltas
        assert (batch.emptied(), delta.emptied) == ({ITEM.id}, True)
        assert (pairs(delta.before), pairs(delta.after)) == ([(4, "d")], [])
        assert [rows for _, _, rows in batch.chunks] == [1]
        assert batch.chunk_rows == 1
        (unlike,) = read(reader, max_rows=1).deltas + read(reader, after=1, max_rows=1).deltas
        assert (unlike.emptied, pairs(unlike.after)) == (False, [(1, "c")])

    def test_a_table_that_is_emptied_and_stays_so_is_named(self, log: EventLogUnderTest) -> None:
        log.writer(1).append(content(1, images((1, 0, 0, None, None))))
        (delta,) = read(log.reader()).deltas
        assert (delta.emptied, delta.before.num_rows, delta.after.num_rows) == (True, 0, 0)

    def test_appended_columns_are_null_in_older_images(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(content(1, dump_rows((5, "c")), images((1, 0, 1, 1, "a"))))
        newer = images((2, 0, 1, 2, "b", Decimal("1.50")), schema=WIDER)  # type: ignore[arg-type]
        writer.append(content(2, dump_rows((6, "d", None), schema=WIDER), images((2, 0, 1, 3, "x")), newer))
        batch = read(log.reader())
        (delta,) = batch.deltas
        assert delta.schema == WIDER
        assert sorted(pairs(delta.after)) == [(1, "a", None), (2, "b", Decimal("1.50")), (3, "x", None)]
        assert [(schema, rows) for schema, _, rows in batch.chunks] == [(ITEM, 1), (WIDER, 1)]

    def test_a_column_added_between_others_is_null_in_older_images_of_its_segment(
        self, log: EventLogUnderTest
    ) -> None:
        between = replace(WIDER, columns=(WIDER.columns[2], *ITEM.columns))
        newer = images((1, 1, 1, Decimal("1.50"), 2, "b"), schema=between)  # type: ignore[arg-type]
        log.writer(1).append(content(1, images((1, 0, 1, 1, "a")), newer))
        (delta,) = read(log.reader()).deltas
        assert delta.schema == between
        assert sorted(pairs(delta.after), key=str) == [(Decimal("1.50"), 2, "b"), (None, 1, "a")]

    def test_a_batch_ends_before_columns_change_otherwise(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(inserted(1, 1))
        writer.append(content(2, images((2, 0, 1, 2), schema=NARROWER)))  # type: ignore[arg-type]
        assert read(log.reader()).last == 1
        assert pairs(read(log.reader(), 1).deltas[0].after) == [(2,)]
        writer.append(inserted(3, 3, ends=False))
        writer.append(content(3, images((3, 1, 1, 4), schema=NARROWER)))  # type: ignore[arg-type]
        with pytest.raises(EventLogError):
            log.reader().read(2, 10, 0)

    # -- release and damage ---------------------------------------------------------------------------------------

    def test_released_segments_go_and_the_newest_stays(self, log: EventLogUnderTest) -> None:
        writer, reader = log.writer(1), log.reader()
        paths = []
        for order in (1, 2, 3):
            writer.append(content(order, dump_rows((order, "x"))))
            paths.append(read(reader, order - 1).chunks[0][1][0])
        reader.release(2)
        for path in paths[:2]:
            with pytest.raises((EventLogError, FileNotFoundError)):
                log.chunk(path)
        assert pairs(log.chunk(paths[2])) == [(3, "x")]
        assert read(reader, 2).last == 3
        reader.release(3)
        reader.release(3)
        last = log.writer(2).last()
        assert last is not None
        assert last.number == 3
        assert log.writer(2).append(inserted(4, 4)).number == 4
        assert read(reader, 3).last == 4

    def test_reading_below_what_was_released_is_an_error(self, log: EventLogUnderTest) -> None:
        writer, reader = log.writer(1), log.reader()
        for order in (1, 2, 3):
            writer.append(inserted(order, order))
        assert read(reader, 1).last == 3
        reader.release(2)
        with pytest.raises(EventLogError, match="released"):
            reader.read(1, 10, 0)
        assert read(reader, 2).last == 3

    def test_a_missing_manifest_is_an_error(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        for order in (1, 2, 3):
            writer.append(inserted(order, order, ends=order != 1))
        assert read(log.reader()).last == 3
        log.lose_manifest(2)  # segment 1 alone ends no transaction
        with pytest.raises(EventLogError, match="2"):
            log.reader().read(0, 10, 0)
        with pytest.raises(EventLogError, match="2"):
            log.reader().read(1, 10, 0)
        assert read(log.reader(), 2).last == 3

    def test_missing_rows_are_an_error(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        manifests = [writer.append(content(order, dump_rows((order, "x")))) for order in (1, 2)]
        assert read(log.reader()).last == 2
        log.lose_data(manifests[1])
        assert read(log.reader(), 0, 1).last == 1
        with pytest.raises(EventLogError, match="missing"):
            log.reader().read(1, 10, 0)

    # -- invariant ------------------------------------------------------------------------------------------------

    # the same function runs once per subclass, and the subclasses hold no state
    @settings(max_examples=40, suppress_health_check=[HealthCheck.differing_executors])
    @given(data=st.data())
    def test_any_split_nets_to_the_same_states(self, data: st.DataObject) -> None:
        """After each batch the target holds exactly the source's state at that point of the log."""
        with tempfile.TemporaryDirectory() as directory:
            log = self.make(Path(directory))
            states = append_history(log.writer(1), data)
            reader, after, state = log.reader(), 0, dict[Any, Any]()
            while (batch := reader.read(after, data.draw(st.integers(1, 12)), 0)) is not None:
                for delta in batch.deltas:
                    for key, name in pairs(delta.before):
                        assert state.pop(key) == name, "a net before image is the state before the batch"
                    for key, name in pairs(delta.after):
                        assert key not in state
                        state[key] = name
                assert state == states[batch.last]
                after = batch.last
            assert after == max(states)
