"""A run's progress: a drawing that keeps within its terminal, plain lines with their times elsewhere."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from migrator.cli.group.streams import Unwritten
from migrator.cli.run.display import Display
from migrator.cli.run.drawing import drawing
from migrator.cli.run.lines import Lines
from migrator.cli.run.rates import Rates
from migrator.cli.run.words import phase_words
from migrator.model.observed.observation import Lag
from migrator.model.position import Position
from migrator.model.progress import Filling, TableDump
from migrator.model.table import TableId
from migrator.run.progress import Progress, Snapshot

NONE = Lag(0, 0.0, 0.0, "")
AIRLINES = TableDump(TableId("s", "airlines"), done=True, rows=16, chunks=1, estimated_rows=16)
FLIGHTS = TableDump(TableId("s", "flights"), rows=90, dropped_rows=10, chunks=2, estimated_rows=400)
NOW = Snapshot(dumps=(AIRLINES, FLIGHTS), applied=Position(7, "0/7"), applied_changes=1234, epoch=1)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def drawn(now: Snapshot, width: int = 120, height: int = 24) -> str:
    console = Console(width=width, height=height, record=True, force_terminal=True)
    console.print(drawing(now, Rates(), NONE, console))
    return console.export_text()


def lines(*snapshots: Snapshot) -> list[str]:
    shown = Lines(Rates())
    return [line for now in snapshots for line in shown.due(now, NONE)]


def test_on_a_terminal_every_table_has_its_share_and_the_stream_its_lag() -> None:
    shown = drawn(replace(NOW, warnings=("capture waits: full",)))
    for words in ("airlines", "done", "flights", "25%", "1,234 changes", "lag 0.0 s", "0/7", "dumping"):
        assert words in shown
    assert "warning: capture waits: full" in shown


@pytest.mark.parametrize("tables", [20, 40, 500])
def test_what_matters_stays_on_a_small_terminal(tables: int) -> None:
    """At 80 by 24: the stream's lag, the note and the warnings are never cut off, whatever the number of tables."""
    dumps = tuple(
        replace(AIRLINES if number % 2 else replace(FLIGHTS, chunks=0), table=TableId("s", f"t{number}"))
        for number in range(tables)
    )
    being_read = replace(FLIGHTS, table=TableId("s", "read_now"), chunks=9)
    warnings = tuple(f"warning number {number}, {'long ' * 20}" for number in range(6))
    now = replace(NOW, dumps=(*dumps, being_read), warnings=warnings, note="source log: cut; trying again")
    shown = drawn(now, 80, 24).rstrip("\n").splitlines()
    assert len(shown) < 24
    text = "\n".join(shown)
    assert "lag 0.0 s" in text
    assert "trying again" in text
    assert "warning number 0" in text
    assert "2 warning(s) more" in text
    assert "read_now" in text, "tables that are being read come first"
    assert re.search(r"and \d+ tables more: \d+ done, [\d,]+ rows", text)


def test_few_tables_are_all_shown() -> None:
    assert "tables more" not in drawn(NOW)


def test_a_line_says_the_phase_the_dump_and_the_stream() -> None:
    (line,) = lines(NOW)
    assert line.startswith("dumping | dump flights 25% (90 rows, 0 rows/s) | 1/2 tables done | applied 1,234")


def test_a_line_comes_only_when_something_changed_and_a_warning_only_once() -> None:
    warned = replace(NOW, warnings=("capture waits: full",))
    said = lines(NOW, NOW, warned, warned, replace(warned, applied_changes=1235), NOW)
    assert [line for line in said if not line.startswith("dumping")] == [
        "warning: capture waits: full",
        "over: capture waits: full",
    ]
    assert sum(line.startswith("dumping") for line in said) == 3


def test_a_start_names_its_steps_and_a_standby_what_it_is() -> None:
    assert phase_words(Snapshot(doing="starting Spark")) == "starting: starting Spark"
    assert phase_words(Snapshot(doing="starting Spark", standing_by=True, led=3)) == "standing by"
    assert phase_words(Snapshot()) == "starting"
    assert phase_words(replace(NOW, epoch=0, led=1, ended=True)) == "stopped"
    (line,) = lines(Snapshot(doing="checking both servers", note="later"))
    assert line == "starting: checking both servers | later"


def test_joined_targets_that_are_filled_are_named() -> None:
    now = replace(NOW, dumps=(AIRLINES,), filling=(Filling("orders", 2, 3_000, 9_000),))
    assert "filling orders 3,000 of about 9,000 rows" in lines(now)[0]
    assert "filling orders 3,000 of about 9,000 rows" in drawn(now)


def test_the_last_state_is_always_printed_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.set(dumps=NOW.dumps, epoch=1)
    with Display(progress, plain=True):
        progress.set(note="source log: cut; trying again")
        progress.warn("slot", "3 GiB behind")
    said = capsys.readouterr().out.splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line) for line in said)
    assert said[-1].endswith("source log: cut; trying again")
    assert [line.split(" ", 1)[1] for line in said if "3 GiB" in line] == ["warning: 3 GiB behind"]


@pytest.mark.parametrize("name", ["[/b]", "[red]x", ":smile:", "a\nb", "esc\x1b[2J", "turned\u202eabc"])
def test_a_hostile_name_is_neither_markup_nor_an_order(name: str) -> None:
    """``[/b]`` ended the drawing for good: it closes what was never opened."""
    said = name if name.isprintable() else ascii(name)[1:-1]
    hostile = replace(FLIGHTS, table=TableId("s", name))
    now = replace(NOW, dumps=(hostile,), note=f"{name} waits", warnings=(f"{name} fills",))
    shown = drawn(now)
    for words in (f"{said} ", f"{said} waits", f"warning: {said} fills"):
        assert words in shown
    assert len(shown.splitlines()) == len(
        drawn(replace(NOW, dumps=(FLIGHTS,), note="n", warnings=("w",))).splitlines()
    )


def test_lines_come_again_once_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    failed = threading.Event()

    def echo(line: str) -> None:
        if not failed.is_set():
            failed.set()
            raise Unwritten(OSError(28, "No space left on device"))
        said.append(line)

    monkeypatch.setattr("migrator.cli.run.display.click.echo", echo)
    progress = Progress()
    with Display(progress, plain=True):
        assert failed.wait(30)
        progress.set(note="there is room again")
    assert said[-1].endswith("there is room again")


def test_a_remaining_time_is_by_minutes_and_does_not_jump() -> None:
    """1,000 rows a second on average, in bursts: by the last five seconds it would be anything."""
    clock, seen = Clock(), []
    rates = Rates(clock)
    for second in range(120):
        clock.s, rows = float(second), 10_000 * (second // 10 + 1)
        flights = replace(FLIGHTS, rows=rows, dropped_rows=0, estimated_rows=1_000_000)
        rates.note(replace(NOW, dumps=(flights,)))
        eta_s = rates.eta_s(flights)
        if second >= 60:
            assert eta_s is not None
            seen.append(eta_s + second)
    assert max(seen) < 1.25 * min(seen)


def test_no_remaining_time_without_two_looks_or_without_an_estimate() -> None:
    clock = Clock()
    rates = Rates(clock)
    rates.note(NOW)
    assert rates.eta_s(FLIGHTS) is None
    clock.s = 2.0
    later = replace(FLIGHTS, rows=290)
    rates.note(replace(NOW, dumps=(AIRLINES, later)))
    assert rates.eta_s(later) == pytest.approx(1.0)
    assert rates.eta_s(replace(later, estimated_rows=0)) is None


def test_dump_requests_are_shown_beside_the_first_dump() -> None:
    table = TableId("s", "flights")
    now = replace(
        NOW,
        requests=(
            TableDump(table, rows=1500, dropped_rows=3, chunks=7, request="r2.1"),
            TableDump(table, rows=5, chunks=1, done=True, request="r3.2"),
        ),
    )
    shown = drawn(now)
    for words in ("flights (r2)", "7 chunks", "1,500", "flights (r3)", "read"):
        assert words in shown
    assert "2 dump request(s), 1,508 rows read" in lines(now)[0]
