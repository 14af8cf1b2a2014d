"""What a run shows: a table that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import pytest
from rich.console import Console

from migrator.cli.run.display import Display
from migrator.model.position import Position
from migrator.model.progress import TableDump
from migrator.model.table import TableId
from migrator.run.progress import Progress


@pytest.fixture
def progress() -> Progress:
    progress = Progress()
    dumps = (
        TableDump(TableId("s", "airlines"), done=True, rows=16, chunks=1, estimated_rows=16),
        TableDump(TableId("s", "flights"), rows=90, dropped_rows=10, chunks=2, estimated_rows=400),
    )
    progress.set(dumps=dumps, applied=Position(7, "0/7"), applied_changes=1234)
    progress.answered(progress.clock(), Position(7, "0/7"))
    return progress


def test_on_a_terminal_every_table_has_its_share_and_the_stream_its_lag(progress: Progress) -> None:
    console = Console(width=120, record=True, force_terminal=True)
    progress.warn("event log", "capture waits: full")
    console.print(Display(progress, plain=False)._drawing())
    shown = console.export_text()
    for words in (
        "airlines",
        "done",
        "flights",
        "25%",
        "1,234 changes",
        "lag 0.0 s",
        "0/7",
        "warning: capture waits: full",
    ):
        assert words in shown


def test_elsewhere_one_line_says_the_same_and_the_last_state_is_always_printed(
    progress: Progress, capsys: pytest.CaptureFixture[str]
) -> None:
    with Display(progress, plain=True):
        progress.set(note="source log: cut; trying again")
        progress.warn("event log", "capture waits: full")
        progress.warn("slot", "3 GiB behind")
    line = capsys.readouterr().out.strip().splitlines()[-1]
    assert line.startswith("dump flights 25% (90 rows)")
    assert "1/2 tables done" in line
    assert line.endswith(
        "source log: cut; trying again | warning: capture waits: full | warning: 3 GiB behind"
    )


def test_eta_needs_two_looks_and_an_estimate(progress: Progress) -> None:
    display = Display(progress, plain=True)
    first = display._line()
    assert "ETA" not in first
    flights = progress.snapshot().dumps[1]
    later = TableDump(flights.table, rows=290, dropped_rows=10, chunks=3, estimated_rows=400)
    progress.set(dumps=(progress.snapshot().dumps[0], later))
    assert "ETA" in display._line()


def test_dump_requests_are_shown_beside_the_first_dump(progress: Progress) -> None:
    table = TableId("s", "flights")
    progress.set(
        requests=(
            TableDump(table, rows=1500, dropped_rows=3, chunks=7, request="r2.1"),
            TableDump(table, rows=5, chunks=1, done=True, request="r3.2"),
        )
    )
    console = Console(width=120, record=True, force_terminal=True)
    console.print(Display(progress, plain=False)._drawing())
    shown = console.export_text()
    for words in ("flights (r2)", "7 chunks", "1,500", "flights (r3)", "read"):
        assert words in shown
    assert "2 dump request(s), 1,508 rows read" in Display(progress, plain=True)._line()
