"""What every output of change events must do. A new adapter subclasses ``OutputContract`` and says how to
read it."""

from __future__ import annotations

import contextlib
import resource
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.columnar.types import image_schema
from migrator.errors import MigratorError, OutputError
from migrator.model.segment import FileKind
from migrator.ports.eventlog import Segment, SegmentContent, TableData
from migrator.ports.output import EventOutput
from migrator.run.commands.event_stream import EventStream, Streamed
from migrator.run.failure import Stopping
from tests.contract.event_log.eventlog_content import WIDER, content, dump_rows, images, inserted
from tests.contract.outputs.output_content import WIDE, Event, changes, image, numbered, wide_rows, wide_table

NAME = "out"
SLOW_AND_SHARED = [HealthCheck.too_slow, HealthCheck.differing_executors]


class OutputUnderTest(Protocol):
    """One output, made anew for every process, and how a test reads and breaks it."""

    def output(self) -> EventOutput: ...

    def events(self) -> list[Event]:
        """What it holds, in order."""
        ...

    def size(self) -> int:
        """Bytes that it has written, at least since its last commit."""
        ...

    def tear(self, cut: int) -> None:
        """As if killed ``cut`` bytes before the end of what it wrote last."""
        ...


class Kit:
    """An event log and an output in one folder."""

    def __init__(self, folder: Path, under_test: OutputUnderTest) -> None:
        self.log, self.under_test = folder / "log", under_test
        self._writer: FileSegmentWriter | None = None

    def append(self, *contents: SegmentContent) -> None:
        self._writer = self._writer or FileSegmentWriter(self.log, 1)
        for one in contents:
            self._writer.append(one)

    def stream(
        self,
        *tables: str,
        from_segment: int | None = None,
        commit_s: float = 60,
        reader: FileSegmentReader | None = None,
    ) -> Streamed:
        """One process's life."""
        reader, output = reader or FileSegmentReader(self.log, NAME), self.under_test.output()
        try:
            return EventStream(reader, output, tables, from_segment, commit_s).run(Stopping(), follow=False)
        finally:
            output.close()
            reader.close()

    def place(self) -> Path:
        (found,) = (self.log / "readers").glob("*.json")
        return found

    def events(self) -> list[Event]:
        return self.under_test.events()


class _Killed(BaseException):
    """The process ends here."""


class _KilledReader(FileSegmentReader):
    """Killed before it reads a third segment."""

    _read = 0

    def read_segment(self, after: int, timeout_s: float) -> Segment | None:
        self._read += 1
        if self._read == 3:
            raise _Killed
        return super().read_segment(after, timeout_s)


class OutputContract:
    """Subclasses define ``make``."""

    def make(self, directory: Path) -> OutputUnderTest:
        raise AssertionError("a subclass says how")

    @pytest.fixture
    def kit(self, tmp_path: Path) -> Kit:
        return Kit(tmp_path, self.make(tmp_path))

    def test_events_come_in_order_with_their_kind_and_images(self, kit: Kit) -> None:
        kit.append(
            content(1, dump_rows((1, "a"), (2, "b"))),
            content(
                3,
                images((2, 0, 1, 3, "c"), (3, 1, -1, 1, "a"), (3, 1, 1, 7, "a")),
                images((2, 1, 1, 9, "w", None), (3, 0, -1, 2, "b", None), schema=WIDER),
            ),
            content(4, images((4, 0, 0, None, None), (4, 1, 1, 5, "e"))),
        )
        kit.stream()
        found = [
            (
                event.segment,
                event.number,
                event.op,
                _item(event.before),
                _item(event.after),
                event.order,
                event.index,
            )
            for event in kit.events()
        ]
        assert found == [
            (1, 0, "r", None, (1, "a"), None, None),
            (1, 1, "r", None, (2, "b"), None, None),
            (2, 0, "c", None, (3, "c"), 2, 0),
            (2, 1, "c", None, (9, "w"), 2, 1),
            (2, 2, "d", (2, "b"), None, 3, 0),
            (2, 3, "u", (1, "a"), (7, "a"), 3, 1),
            (3, 0, "t", None, None, 4, 0),
            (3, 1, "c", None, (5, "e"), 4, 1),
        ]

    def test_what_it_holds_it_never_writes_again(self, kit: Kit) -> None:
        kit.append(inserted(1, 1, 2))
        assert kit.stream().events == 2
        assert kit.stream().events == 0
        kit.append(inserted(2, 3))
        assert kit.stream().events == 1
        assert list(numbered(kit.events())) == [(1, 0), (1, 1), (2, 0)]

    def test_segments_without_events_are_not_read_again(self, kit: Kit) -> None:
        kit.append(content(1), content(2), inserted(3, 1), content(4))
        assert kit.stream().segment == 4
        assert kit.stream().segment == 4
        assert list(numbered(kit.events())) == [(3, 0)]

    def test_only_the_chosen_tables_are_written_under_their_numbers(self, kit: Kit) -> None:
        kit.append(content(1, changes(1, (0, 1, 1, "a"), (2, 1, 2, "b")), _wide(1, [])), inserted(2, 3))
        with pytest.raises(MigratorError, match="isn't captured"):
            kit.stream("items")
        kit.stream("public.item")
        assert list(numbered(kit.events())) == [(1, 0), (1, 1), (2, 0)]
        with pytest.raises(OutputError, match="other tables"):
            kit.stream()

    @pytest.mark.parametrize("commit_s", [0.0001, 60], ids=["often", "at the end"])
    def test_killed_at_any_byte_nothing_is_lost_or_written_twice(
        self, tmp_path: Path, commit_s: float
    ) -> None:
        cut = size = 0
        while cut <= size:
            folder = tmp_path / str(cut)
            folder.mkdir()
            kit = Kit(folder, self.make(folder))
            kit.append(inserted(1, 1, 2))
            kit.stream()
            before, stored = kit.events(), kit.place().read_bytes()
            kit.append(inserted(2, 3, 4), content(3, dump_rows((9, "x"))))
            kit.stream(commit_s=commit_s)
            whole, size = kit.events(), kit.under_test.size()
            assert len(whole) == 5
            kit.place().write_bytes(stored)  # killed before the place was stored
            kit.under_test.tear(cut)
            assert kit.events()[:2] == before
            kit.stream()
            assert kit.events() == whole, f"cut {cut} of {size} bytes"
            cut += max(1, size // 25)

    def test_killed_again_while_it_reads_what_the_output_holds_nothing_is_written_twice(
        self, kit: Kit
    ) -> None:
        kit.append(inserted(1, 1))
        kit.stream()
        stored = kit.place().read_bytes()
        kit.append(*(inserted(order, order) for order in (2, 3, 4)))
        kit.stream()
        whole = kit.events()
        kit.place().write_bytes(stored)  # killed before the place was stored
        with pytest.raises(_Killed):
            kit.stream(commit_s=0.0001, reader=_KilledReader(kit.log, NAME))
        kit.stream()
        assert kit.events() == whole

    def test_killed_before_its_first_commit_it_begins_again(self, kit: Kit) -> None:
        kit.stream()
        stored = kit.place().read_bytes()
        kit.append(inserted(1, 1, 2))
        kit.stream()
        whole = kit.events()
        kit.place().write_bytes(stored)
        kit.under_test.tear(1)
        kit.stream()
        assert kit.events() == whole

    def test_what_was_not_written_by_us_is_never_touched(self, kit: Kit) -> None:
        kit.append(inserted(1, 1))
        kit.stream()
        kit.place().unlink()
        with pytest.raises(OutputError, match="isn't empty") as caught:
            kit.stream()
        assert caught.value.remedy
        assert len(kit.events()) == 1
        assert list((kit.log / "readers").glob("*.json")) == []

    def test_it_begins_where_it_is_told_and_says_so_later(self, kit: Kit) -> None:
        kit.append(*(inserted(order, order) for order in (1, 2, 3)))
        kit.stream(from_segment=2)
        assert list(numbered(kit.events())) == [(2, 0), (3, 0)]
        kit.append(inserted(4, 4))
        kit.stream(from_segment=2)
        assert list(numbered(kit.events())) == [(2, 0), (3, 0), (4, 0)]
        with pytest.raises(OutputError, match="begun at another segment"):
            kit.stream(from_segment=1)

    @given(rows=wide_rows(), data=st.data())
    @settings(
        max_examples=40,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    )
    def test_rows_of_every_type_come_back_exactly(
        self, rows: list[tuple[Any, ...]], data: st.DataObject
    ) -> None:
        table = wide_table(rows)
        structs = [image(WIDE, row) for row in table.to_struct_array().combine_chunks()]
        signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(rows), max_size=len(rows)))
        with tempfile.TemporaryDirectory() as folder:
            kit = Kit(Path(folder), self.make(Path(folder)))
            dumped = TableData(WIDE, FileKind.CHUNK, table)
            kit.append(content(1, dumped), content(2, _wide(2, rows, signs)))
            kit.stream()
            found = kit.events()
        assert [event.after for event in found if event.segment == 1] == structs
        logged = [event.before if event.op == "d" else event.after for event in found if event.segment == 2]
        assert logged == structs
        assert [event.op for event in found if event.segment == 2] == ["c" if s > 0 else "d" for s in signs]

    def test_a_full_disk_is_named_and_the_next_start_goes_on(self, kit: Kit) -> None:
        kit.append(inserted(1, 1))
        kit.stream()
        kit.append(inserted(2, *range(2000)))
        with partial_disk(), pytest.raises(OutputError, match="can't be written") as caught:
            kit.stream()
        assert "EFBIG" in caught.value.cause
        assert caught.value.remedy
        assert len(kit.events()) < 2001
        kit.stream()
        assert list(numbered(kit.events())) == [(1, 0), *((2, n) for n in range(2000))]


@contextlib.contextmanager
def partial_disk() -> Iterator[None]:
    """While it lasts, no file can grow beyond 4 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def _wide(order: int, rows: Sequence[tuple[Any, ...]], signs: Sequence[int] = ()) -> TableData:
    head = [
        pa.array([order] * len(rows), pa.int64()),
        pa.array(range(len(rows)), pa.int64()),
        pa.array(list(signs), pa.int8()),
    ]
    table = pa.Table.from_arrays([*head, *wide_table(rows).columns], schema=image_schema(WIDE))
    return TableData(WIDE, FileKind.LOG, table)


def _item(found: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if found is None else (found["id"], found["name"])
