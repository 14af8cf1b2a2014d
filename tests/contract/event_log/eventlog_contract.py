"""What every event log must do. A new adapter subclasses ``EventLogContract`` and says how to make one."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from migrator.columnar.types import arrow_schema, image_schema
from migrator.errors import EventLogError, FencedError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import FileKind
from migrator.ports.eventlog import SegmentContent, TableData
from tests.contract.event_log.eventlog_batches_contract import EventLogBatchesContract
from tests.contract.event_log.eventlog_content import (
    ITEM,
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
from tests.contract.event_log.eventlog_under_test import Crashed, EventLogUnderTest, crash_at


class EventLogContract(EventLogBatchesContract):
    """The tests of what is written and fenced, of release and damage; and those of batches."""

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
