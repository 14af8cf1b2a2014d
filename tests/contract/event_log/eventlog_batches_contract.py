"""What every event log must do when it is read: batches, and what is left of each key in one."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrator.errors import EventLogError
from migrator.ports.eventlog import Batch
from tests.contract.event_log.eventlog_content import (
    ITEM,
    NARROWER,
    WIDER,
    append_history,
    checkpoint,
    content,
    dump_rows,
    images,
    inserted,
    pairs,
    read,
)
from tests.contract.event_log.eventlog_under_test import EventLogMaker, EventLogUnderTest


class EventLogBatchesContract(EventLogMaker):
    """The tests of batches."""

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

    def test_a_batch_ends_before_a_column_is_added(self, log: EventLogUnderTest) -> None:
        """What rows of before hold in it isn't in the log: its default, for one."""
        writer = log.writer(1)
        writer.append(content(1, dump_rows((5, "c")), images((1, 0, 1, 1, "a"))))
        newer = images((2, 0, 1, 2, "b", Decimal("1.50")), schema=WIDER)
        writer.append(content(2, dump_rows((6, "d", None), schema=WIDER), newer))
        before, since = read(log.reader()), read(log.reader(), 1)
        assert (before.last, pairs(before.deltas[0].after)) == (1, [(1, "a")])
        assert since.deltas[0].schema == WIDER
        assert pairs(since.deltas[0].after) == [(2, "b", Decimal("1.50"))]
        assert [(schema, rows) for schema, _, rows in (*before.chunks, *since.chunks)] == [
            (ITEM, 1),
            (WIDER, 1),
        ]

    def test_of_a_column_added_within_a_segment_nothing_is_left(self, log: EventLogUnderTest) -> None:
        between = replace(WIDER, columns=(WIDER.columns[2], *ITEM.columns))
        newer = images((1, 1, 1, Decimal("1.50"), 2, "b"), schema=between)
        log.writer(1).append(content(1, images((1, 0, 1, 1, "a")), newer))
        (delta,) = read(log.reader()).deltas
        assert delta.schema == ITEM
        assert sorted(pairs(delta.after)) == [(1, "a"), (2, "b")]

    def test_a_batch_ends_before_columns_change(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(inserted(1, 1))
        writer.append(content(2, images((2, 0, 1, 2), schema=NARROWER)))
        assert read(log.reader()).last == 1
        assert pairs(read(log.reader(), 1).deltas[0].after) == [(2,)]
        writer.append(inserted(3, 3, ends=False))
        writer.append(content(3, images((3, 1, 1, 4), schema=NARROWER)))
        within = read(log.reader(), 2)
        assert within.last == 4, "a transaction is never cut"
        assert within.deltas[0].schema == NARROWER, "of a column that not all rows have nothing is left"
        assert pairs(within.deltas[0].after) == [(3,), (4,)]

    def test_a_key_that_changes_within_a_transaction_is_refused(self, log: EventLogUnderTest) -> None:
        writer = log.writer(1)
        writer.append(inserted(1, 1, ends=False))
        other = replace(ITEM, key=ITEM.names())
        writer.append(content(1, images((1, 1, 1, 2, "b"), schema=other)))
        with pytest.raises(EventLogError):
            log.reader().read(0, 10, 0)

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
