"""``migrator capturebench``: capture alone, into an event log on disk, beside Debezium and mysql-replication."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.wiring import parts as wiring
from scenarios.bench.bed import Report
from scenarios.bench.capture.debezium import CountedDebezium, missing_extra
from scenarios.bench.capture.library import PlainLibrary
from scenarios.bench.capture.load import Load, within
from scenarios.bench.capture.ours import OurCapture, lags_of, lags_s
from scenarios.bench.capture.probe import Commit, probing
from scenarios.bench.capture.turns import Round, compared
from scenarios.bench.orders.old_schema import OrderWriters, create, touch
from scenarios.bench.pipeline import PROJECT, marked, write_reports
from scenarios.database import Database
from scenarios.project import make_project, servers
from scenarios.resources import machine

_ENGINES = ("postgresql", "mariadb", "mysql")
_WINDOW_S = 8.0
_WARM_UP_S = 3.0
_ROUNDS, _ROUND_S, _SETTLED_S = 5, 4.1, 1.0
_LAG_RATE = 500
_DEADLINE_S = 300.0
_POLL_S = 0.1
Span = tuple[float, float]


@click.command()
@click.option("--source", type=click.Choice([*_ENGINES, "all"]), default="all", show_default=True)
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the dumped table.")
@click.option("--changes", default=500_000, show_default=True, help="Row changes in large transactions.")
@click.option("--small", default=50_000, show_default=True, help="Transactions of one row change.")
@click.option(
    "--others/--no-others", default=True, show_default=True, help="Also Debezium and mysql-replication."
)
@click.option(
    "--load/--no-load", default=True, show_default=True, help="Also pgbench or sysbench beside a dump."
)
@click.option(
    "--throughput/--no-throughput",
    default=True,
    show_default=True,
    help="Also dump, log and lag by themselves.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    default=None,
    callback=lambda _, __, file: marked(file),
    help="Put the tables into this Markdown file.",
)
def capturebench(
    source: str,
    rows: int,
    changes: int,
    small: int,
    others: bool,
    load: bool,
    throughput: bool,
    write: Path | None,
) -> None:
    """Measure capture alone: dump and log into the event log, beside others; lag; what a load loses by it."""
    click.echo(f"machine: {machine()}")
    reports = []
    for engine in _ENGINES if source == "all" else (source,):
        report = Report(engine)
        click.echo(engine)
        if throughput:
            with _bed(engine, rows) as bed:
                ours = bed.ours()
                _throughput(bed, ours, Work(rows, changes, small, others), report)
                _lag(bed, ours, rows, report)
        if load:
            _beside_a_load(engine, rows, report)
        reports.append(report)
    if write is not None:
        write_reports(write, reports, rows)
        click.echo(f"written to {write}")


@dataclass(frozen=True)
class Work:
    """The amount of work in a benchmark, and whether other tools do it too."""

    rows: int
    changes: int
    small: int
    others: bool


@dataclass(frozen=True)
class Bed:
    """A source with its filled table, a project, a folder for whoever needs one."""

    old: Database
    config: Path
    folder: Path

    def ours(self) -> OurCapture:
        """The product's capture, with an event log of its own."""
        return OurCapture(wiring.parts(configuration.load(self.config)), self.config.parent / ".migrator")


@contextmanager
def _bed(engine: str, rows: int) -> Iterator[Bed]:
    with ExitStack() as stack:
        old, new = servers(stack, engine)
        create(old, rows)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="migrator-bench-")))
        config = make_project(folder / "project", old, new, PROJECT, "orders")
        wiring.upgrade_user_target(configuration.load(config))
        yield Bed(old, config, folder)


def _throughput(bed: Bed, ours: OurCapture, work: Work, report: Report) -> None:
    """One after the other, never at once: dump, large transactions, transactions of one row."""
    debezium = None
    if work.others and bed.old.kind != "mariadb" and not missing_extra():
        debezium = CountedDebezium(bed.old, "orders", bed.folder)
    rate = work.rows / ours.dumped()
    report.add("dump into the event log", f"{rate:,.0f} rows/s")
    if debezium is not None:
        _compare(report, "  Debezium's initial snapshot", rate, debezium.snapshot(work.rows))
    for what, number, size in (
        ("log, 1,000 rows a transaction", work.changes, 1000),
        ("log, one row a transaction", work.small, 1),
    ):
        library = PlainLibrary(bed.old) if work.others and bed.old.kind != "postgresql" else None
        _forget_what_was_read(bed.old, ours)
        _touch(bed.old, work.rows, number, size)
        rate = number / ours.timed(ours.caught_up())
        report.add(f"{what}, into the event log", f"{rate:,.0f} changes/s")
        if library is not None:
            _compare(report, "  mysql-replication", rate, library.rate(number))
        if debezium is not None:
            _compare(report, "  Debezium", rate, debezium.stream(number))


def _forget_what_was_read(old: Database, ours: OurCapture) -> None:
    """PostgreSQL begins to decode at the last place where it could note its transactions, every 15 s at the
    earliest.

    So the time of a backlog would hold that of the one before, decoded once more; it isn't in Debezium's, which
    begins with the first record. The server notes the place now, and what follows it is read.
    """
    if old.kind == "postgresql":
        connection = old.connect(autocommit=True)
        connection.cursor().execute("SELECT pg_catalog.pg_log_standby_snapshot()")
        connection.close()
        _touch(old, 1, 1, 1)
        ours.timed(ours.caught_up())


def _touch(old: Database, rows: int, changes: int, size: int) -> None:
    while changes > 0:
        touch(old, 1, min(rows, changes), size)
        changes -= rows


def _compare(report: Report, what: str, ours: float, other: float) -> None:
    report.add(what, f"{other:,.0f} /s", f"ours: {ours / other:.1f}x")


def _lag(bed: Bed, ours: OurCapture, rows: int, report: Report) -> None:
    """Age of commits when their segment is durable: alone, and beside dumps."""
    writers = OrderWriters(bed.old, rows, rate_per_s=_LAG_RATE)
    with ours.running(), _timed_commits(bed.old) as commits:

        def lags(since_s: float) -> list[tuple[float, float]]:
            return lags_s(ours.state, since_s) if commits is None else lags_of(ours.state, commits, since_s)

        writers.start()
        time.sleep(_WARM_UP_S)
        began = time.time()
        time.sleep(_WINDOW_S)
        _wait(lambda: lags(began))
        halfway = time.time()
        ours.dump_again(_WINDOW_S)
        _wait(lambda: lags(halfway))
        writers.stop()
    how = "" if commits is None else "probes, from before their INSERT"
    seen = lags(began)
    for what, found in (
        ("alone", [lag for at, lag in seen if at < halfway]),
        ("beside dumps", [lag for at, lag in seen if at >= halfway]),
    ):
        found.sort()
        p50_ms, p99_ms = found[len(found) // 2] * 1e3, found[int(len(found) * 0.99)] * 1e3
        report.add(f"commit to durable segment, {what}", f"p50 {p50_ms:,.0f}, p99 {p99_ms:,.0f} ms", how)


def _wait(seen: Callable[[], object]) -> None:
    """Waits until a commit is seen: on a machine that is busy with others the first commit of a window may come after
    it."""
    deadline = time.monotonic() + _DEADLINE_S
    while not seen():
        if time.monotonic() > deadline:
            raise MigratorError("no commit became durable", where=f"in {_DEADLINE_S:g} s")
        time.sleep(_POLL_S)


def _timed_commits(old: Database) -> AbstractContextManager[list[Commit] | None]:
    """Commits with times of their own, where those of the log are whole seconds."""
    return probing(old) if old.kind == "mariadb" else nullcontext()


def _beside_a_load(engine: str, rows: int, report: Report) -> None:
    """The load alone, with the log being captured, and beside dumps: as fast as it goes, and at half of that."""
    with _bed(engine, rows) as bed:
        load = Load(bed.old)
        load.create()
        ours = bed.ours()
        ours.dumped()
        full = _windows(load, ours, None, report)
        _windows(load, ours, full / 2, report)


def _windows(load: Load, ours: OurCapture, rate: float | None, report: Report) -> float:
    """Transactions a second of the load alone. See ``turns`` for how the three kinds of windows are compared.

    Capture runs last of all on this machine, as it would on another: what is measured is what the server gives.
    """
    how = "unthrottled" if rate is None else f"at {rate:,.0f} transactions/s"
    alone: list[Span] = []
    reading: list[tuple[Span, Span, Span]] = []
    with load.running(rate) as seconds:
        time.sleep(_WARM_UP_S)
        for _ in range(_ROUNDS):
            alone.append(_window())
            with ours.running(goes_last=True):
                ours.wait_until_caught_up()  # what was written meanwhile is no part of the load to come
                time.sleep(_SETTLED_S)
                log = _window()
                with ours.dumping():
                    dump = _window()
                time.sleep(_SETTLED_S)
                reading.append((log, dump, _window()))
            time.sleep(_SETTLED_S)
        alone.append(_window())
    rounds = [
        Round(*(within(seconds, span) for span in (before, *between, after)))
        for before, between, after in zip(alone[:-1], reading, alone[1:], strict=True)
    ]
    turns = compared(rounds)
    figures = {"alone": turns.alone, "log captured": turns.log, "beside dumps": turns.dump}
    for what, figure in figures.items():
        shown = f"{figure.tps:,.0f} /s, {load.latency} {figure.latency_ms:.2f} ms"
        report.add(f"{load.name} {how}, {what}", shown, figure.shown())
    report.add(f"  beside dumps, against the log captured ({_ROUNDS} rounds)", "", turns.dump_to_log.shown())
    return turns.alone.tps


def _window() -> Span:
    began = time.monotonic()
    time.sleep(_ROUND_S)
    return began, time.monotonic()
