"""Cut-overs there and back under writers that fail over: the pause of each, the lag of the way back, its price."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.errors import MigratorError
from migrator.model.cutover.record import SWITCH, Record, Side
from migrator.wiring import parts as wiring
from migrator.wiring.cutover import book
from migrator.wiring.target import peek
from scenarios.bench import orders
from scenarios.bench.bed import Bed, Report, fresh
from scenarios.bench.orders.old_schema import create
from scenarios.database import Database
from scenarios.demo_run import running
from scenarios.two_sides import FailsOver, application_login, longest_pause_s
from scenarios.workload import Action, Place, Session

PROJECT = Path(orders.__file__).parent
_SETTINGS = '\n[cutover]\npause_s = 60.0\nmax_lag_s = 30.0\n[spark]\nmaster = "local[2]"\n'
_TOGETHER = 10
"""Row changes a transaction."""
_LONG_S = 300.0
_BETWEEN_S = 2.0
"""Writes at the full rate between two switches, once both ways have caught up."""
_LOOK_S = 0.02
_TRIES = 5
_ALONE_S = 15.0
"""Seconds for which unthrottled writers are counted on the new side, with the way back and without."""
_STATEMENTS = (
    (
        "UPDATE orders SET items = items + 1 WHERE id = %s",
        "DELETE FROM orders WHERE id = %s",
        "INSERT INTO orders VALUES (%s, 1, 2, 'NEW', 'late', 12.34, 0.5, '2024-02-29', 0, 'web')",
    ),
    (
        "UPDATE purchase SET item_count = item_count + 1 WHERE purchase_id = %s",
        "DELETE FROM purchase WHERE purchase_id = %s",
        "INSERT INTO purchase VALUES (%s, 1, 2, 'new', 'late', 1234, 0.5, '2024-02-29 00:00:00+00', true, 'web')",
    ),
)
"""An update, a delete and an insert, of the old side and of the new one."""
_STEPS = [phase for phase in SWITCH if phase != "switching"]


class OrderApplication(FailsOver):
    """Updates, inserts and deletes of orders, or of purchases, ten rows a transaction.

    Args:
        old, new: both sides, as the application logs in.
        rows: how many orders there are.
        rate_per_s: row changes per second; None for as fast as it goes.
        at: where it begins.
    """

    def __init__(
        self, old: Database, new: Database, rows: int, rate_per_s: float | None, at: Side = Side.OLD
    ):
        self._rows = rows
        places = [
            Place(database, (Action("orders", 1, partial(self._changes, *statements)),))
            for database, statements in zip((old, new), _STATEMENTS, strict=True)
        ]
        self._sides = (places[0], places[1])
        self._open = self._sides[at is Side.NEW]
        super().__init__(
            old, self._open.actions, seed=1, rate_per_s=rate_per_s, threads=4, limit_row_changes=None
        )

    def _changes(self, update: str, delete: str, insert: str, session: Session) -> None:
        for _ in range(_TOGETHER):
            chance = session.rng.random()
            known, fresh = session.rng.randint(1, self._rows), session.rng.randint(10**9, 10**12)
            if chance < 0.8:
                session.change(update, known)
            elif chance < 0.9:
                session.change(delete, known)
            else:
                session.change(insert, fresh)


@dataclass
class _Switches:
    """Figures of the switches so far, in seconds."""

    pauses: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    lags: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in Side})
    steps: dict[str, list[float]] = field(default_factory=dict)
    undone: int = 0

    def note(self, record: Record, waited_s: float) -> None:
        """One switch that came through."""
        self.pauses.append(sum(one.seconds for one in record.took))
        self.waits.append(waited_s)
        for one in record.took:
            self.steps.setdefault(one.phase, []).append(one.seconds)


def measure(engine: str, rows: int, rate: float, switches: int) -> Report:
    """Switches there and back; the figures. Raises ``MigratorError`` where the sides aren't equal in the end."""
    report = Report(f"{engine} to postgresql: cut-overs")
    with ExitStack() as stack:
        bed = stack.enter_context(fresh(engine, PROJECT, lambda old: create(old, rows)))
        _with_way_back(bed)
        settings = configuration.load(bed.config)
        process = stack.enter_context(running(bed.config, lambda _: None))
        pair = _Pair(bed, settings, (application_login(bed.old), application_login(bed.new)), process.check)
        pair.wait_for(lambda: _complete(settings), "the dump")
        pair.command("verify")
        pair.command("cutover", "plan", "--accept")
        pair.wait_for(lambda: _complete(way_back(settings)), "the way back's beginning")
        figures, row_rate = _there_and_back(pair, rows, rate, switches)
        _add(report, figures, row_rate)
        _price(pair, rows, report)
    return report


@dataclass(frozen=True)
class _Pair:
    """Two sides of a running migration.

    Attributes:
        logins: the old and the new database, as the application logs in.
        check: raises where the run has ended.
    """

    bed: Bed
    settings: Settings
    logins: tuple[Database, Database]
    check: Callable[[], None]

    def command(self, *words: str) -> None:
        """Runs a command of the tool in this process. Raises ``MigratorError`` where it refuses."""
        code = self.asked(*words)
        if code:
            raise MigratorError(
                f"{' '.join(words)} ended with exit code {code}", cause="its reasons are above"
            )

    def asked(self, *words: str) -> int:
        """Runs a command; its exit code."""
        return int(cli.main([*words, "--config", str(self.bed.config)], standalone_mode=False) or 0)

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        """Waits until something holds."""
        until = time.monotonic() + _LONG_S
        while not holds():
            self.check()
            if time.monotonic() > until:
                raise MigratorError(f"{what} took more than {_LONG_S:g} s")
            time.sleep(_LOOK_S)

    def lag_s(self, to: Side) -> float:
        """Waits until everything that is committed now on the open side is on the other one; returns the seconds."""
        one = self.settings if to is Side.OLD else way_back(self.settings)
        asked_s, position = time.monotonic(), wiring.source_position(one)
        self.wait_for(lambda: wiring.applied_reaches(one, position), "a look at the lag")
        return time.monotonic() - asked_s

    def record(self) -> Record:
        """The record of the cut-over."""
        kept = book(self.settings)
        try:
            record = kept.read()
        finally:
            kept.close()
        assert record is not None
        return record

    def caught_up(self) -> bool:
        """Tells whether both ways have applied what is committed now."""
        both = (self.settings, way_back(self.settings))
        return all(wiring.applied_reaches(one, wiring.source_position(one)) for one in both)


def _with_way_back(bed: Bed) -> None:
    shutil.copy(PROJECT / "reverse.py", bed.config.parent)
    bed.config.write_text(bed.config.read_text() + _SETTINGS)
    connection = bed.new.connect(autocommit=True)
    connection.cursor().execute("ALTER TABLE purchase REPLICA IDENTITY FULL")
    connection.close()


def _complete(settings: Settings) -> bool:
    ledger = peek(settings)
    checkpoint = None if ledger is None else ledger.checkpoint
    return checkpoint is not None and checkpoint.dump_complete() and not checkpoint.filling


def _there_and_back(pair: _Pair, rows: int, rate: float, switches: int) -> tuple[_Switches, float]:
    """Switches under writers; returns the figures, and the writers' rate. In the end both sides must be equal."""
    application = OrderApplication(*pair.logins, rows, rate)
    application.start()
    figures = _Switches()
    try:
        for number in range(switches):
            _switched(pair, application, figures, Side.NEW if number % 2 == 0 else Side.OLD)
            pause = f"{figures.pauses[-1]:.2f} s, writers waited {figures.waits[-1]:.2f} s"
            click.echo(f"  switch {number + 1}: {pause}")
    finally:
        done = application.stop()
    pair.wait_for(pair.caught_up, "catching up")
    pair.command("verify")
    return figures, done.row_changes / done.seconds


def _switched(pair: _Pair, application: FailsOver, figures: _Switches, to: Side) -> None:
    """One switch, and again if it was undone; then writes, and looks at how far the stream lags."""
    for _ in range(_TRIES):
        began_s = time.monotonic()
        if not pair.asked("cutover", "start" if to is Side.NEW else "back", "--wait", str(_LONG_S)):
            break
        figures.undone += 1
    else:
        raise MigratorError(f"no switch to the {to} side came through", cause="its reasons are above")
    record, until = pair.record(), time.monotonic() + _BETWEEN_S
    while time.monotonic() < until:
        figures.lags[to].append(pair.lag_s(to))
    figures.note(record, longest_pause_s(application.report().operations, began_s))


def _price(pair: _Pair, rows: int, report: Report) -> None:
    """Commits a second on the new side with the way back at work, then without it."""
    idle = OrderApplication(*pair.logins, rows, 1.0)
    if pair.record().open_side is Side.OLD:
        _switched(pair, idle, _Switches(), Side.NEW)
    beside = _commits(pair, rows)
    pair.wait_for(pair.caught_up, "catching up")
    pair.command("cutover", "finish", "--wait", str(_LONG_S))
    alone = _commits(pair, rows)
    ratio = f"{beside / alone:.2f}x of {alone:,.0f} without the way back"
    report.add("new side, unthrottled, with the way back at work", f"{beside:,.0f} commits/s", ratio)


def _commits(pair: _Pair, rows: int) -> float:
    application = OrderApplication(*pair.logins, rows, None, Side.NEW)
    application.start()
    time.sleep(_ALONE_S)
    done = application.stop()
    return done.commits / done.seconds


def _add(report: Report, figures: _Switches, rate: float) -> None:
    pauses, waits = sorted(figures.pauses), sorted(figures.waits)
    report.add(f"switches at {rate:,.0f} row changes/s", f"{len(pauses)}", f"{figures.undone} undone besides")
    for name, found in (("fence to open", pauses), ("longest wait of the writers", waits)):
        report.add(f"{name}, p50", f"{_quantile(found, 0.5):.2f} s")
        report.add(f"{name}, p99", f"{_quantile(found, 0.99):.2f} s")
    for phase in _STEPS:
        found = sorted(figures.steps.get(phase, [0.0]))
        report.add(f"  {phase}, p50", f"{_quantile(found, 0.5) * 1000:,.0f} ms")
    for side, name in ((Side.OLD, "the way there"), (Side.NEW, "the way back")):
        found = sorted(figures.lags[side])
        report.add(f"lag of {name}, p50", f"{_quantile(found, 0.5) * 1000:,.0f} ms", f"{len(found)} looks")
        report.add(f"lag of {name}, p99", f"{_quantile(found, 0.99) * 1000:,.0f} ms")


def _quantile(ordered: Sequence[float], share: float) -> float:
    if len(ordered) < 2:
        return ordered[0] if ordered else 0.0
    return statistics.quantiles(ordered, n=100, method="inclusive")[round(share * 100) - 1]
