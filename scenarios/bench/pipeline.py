"""``migrator bench``: dump, streaming, lag, load on the source and memory, in one run, as ratios to a plain copy.

Everything runs on embedded servers on this machine, so source, target, capture and Spark share its cores. Absolute
numbers say little about other machines; the ratios within one run say more.
"""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
import psycopg

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from scenarios.bench import application_measured, cutover_measured, orders, start_measured
from scenarios.bench import shapes_measured as benchmark_shapes
from scenarios.bench.bed import Bed, Report, Steady, dumped, fresh, streamed
from scenarios.bench.orders.old_schema import create, touch
from scenarios.bench.orders.writers_apart import OrderWritersApart
from scenarios.bench.picture import picture
from scenarios.database import Database
from scenarios.resources import PeakMemory, machine

PROJECT = Path(orders.__file__).parent
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_COLUMNS = "id, customer, items, state, comment, total, rebate, created, paid, source"


@click.command()
@click.option(
    "--source", type=click.Choice(["postgresql", "mariadb", "both"]), default="both", show_default=True
)
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table for throughput.")
@click.option(
    "--long-rows",
    default=5_000_000,
    show_default=True,
    help="Changes of the long backlog, and rows of its table.",
)
@click.option(
    "--memory-rows", default=200_000, show_default=True, help="1x of the memory comparison; 10x is ten times."
)
@click.option("--rate", default=1000, show_default=True, help="Row changes per second for the lag.")
@click.option(
    "--only",
    type=click.Choice(["application", "cut-over"]),
    default=None,
    help="Measure this part alone; it writes no table. Cut-overs are measured only so.",
)
@click.option(
    "--switches", default=50, show_default=True, help="Cut-overs there and back, with --only cut-over."
)
@click.option(
    "--application-rate",
    "application_rates",
    type=float,
    multiple=True,
    help="Row changes per second of the application, may be repeated; a tenth of --rate and --rate if not given.",
)
@click.option(
    "--backlog",
    default=20_000,
    show_default=True,
    help="Changes of one kind that the application's users have made while no run went on.",
)
@click.option("--scale", default=1.0, show_default=True, help="Rows of the application's tables, times this.")
@click.option(
    "--verify-seconds",
    "verify_s",
    default=900.0,
    show_default=True,
    help="How long the application's targets may be verified at the end; 0 leaves it out.",
)
@click.option("--seconds", default=20.0, show_default=True, help="How long lag is measured.")
@click.option(
    "--lines",
    default=20_000,
    show_default=True,
    help="Rows of the joined table at 1x, and reached by one row.",
)
@click.option("--events", default=10_000_000, show_default=True, help="Events of the judged history.")
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    default=None,
    callback=lambda _, __, file: marked(file),
    help="Put the table into this Markdown file.",
)
def bench(
    source: str,
    rows: int,
    long_rows: int,
    memory_rows: int,
    rate: int,
    only: str | None,
    switches: int,
    application_rates: tuple[float, ...],
    backlog: int,
    scale: float,
    verify_s: float,
    seconds: float,
    lines: int,
    events: int,
    write: Path | None,
) -> None:
    """Measure this machine: dump, streaming, joins, an application, lag, source slow-down, memory, the checkers D1
    to D8."""
    if only is not None and write is not None:
        raise click.UsageError("--only measures a part of the table: leave --write out")
    click.echo(f"machine: {machine()}")
    rates = application_rates or (rate / 10, float(rate))

    def application() -> list[Report]:
        many = application_measured.measure(rates, seconds, backlog, scale, verify_s)
        return [many, start_measured.one_target("postgresql", min(rows, 100_000))]

    engines = ("postgresql", "mariadb") if source == "both" else (source,)
    if only is not None:
        found = (
            application()
            if only == "application"
            else [cutover_measured.measure(engine, min(rows, 100_000), rate, switches) for engine in engines]
        )
        click.echo("\n".join(one.markdown() for one in found))
        return
    reports = []
    for engine in engines:
        report = Report(engine)
        click.echo(engine)
        with fresh(engine, PROJECT, lambda old: create(old, rows)) as bed:
            plain = _plain_copy(bed, rows, report)
            _dump_and_stream(bed, rows, rate, seconds, plain, report)
        _stream_long(engine, long_rows, plain, report)
        _stream_to_roomy_pages(engine, rows, plain, report)
        _slow_down(engine, rows, report)
        _memory(engine, memory_rows, report)
        reports.append(report)
    reports.append(benchmark_shapes.measure(lines, rate, seconds))
    reports += application()
    reports.append(_judge(Report("the judge of histories"), events))
    if write is not None:
        write_reports(write, reports, rows)
        click.echo(f"written to {write}")


# -- the plain copy ---------------------------------------------------------------------------------------------


def _plain_copy(bed: Bed, rows: int, report: Report) -> float:
    """Rows/s of the simplest copy of the same table into the same kind of table, key included."""
    types = "bigint PRIMARY KEY, customer bigint, items int, state text, comment text, total numeric(12,2)"
    with psycopg.connect(_dsn(bed.new), autocommit=True) as target:
        target.execute(
            f"CREATE TABLE plain_copy (id {types}, rebate float8, created timestamp, paid int2, source text)"
        )
        started = time.monotonic()
        copy = _copy_from_postgres if bed.old.kind == "postgresql" else _copy_from_mariadb
        copy(bed.old, target)
        rate = rows / (time.monotonic() - started)
        copied = target.execute("SELECT count(*) FROM plain_copy").fetchone()
        if copied is None or copied[0] != rows:
            raise MigratorError("the plain copy lost rows", cause=f"{copied} instead of {rows}")
        target.execute("DROP TABLE plain_copy")
    how = "binary COPY to COPY" if bed.old.kind == "postgresql" else "client SELECT to COPY"
    report.add(f"plain copy ({how}, {rows:,} rows)", f"{rate:,.0f} rows/s", "1.00x")
    return rate


def _copy_from_postgres(old: Database, target: psycopg.Connection[tuple[object, ...]]) -> None:
    with (
        psycopg.connect(_dsn(old)) as source,
        source.cursor() as out,
        target.cursor() as into,
        out.copy(f"COPY (SELECT {_COLUMNS} FROM orders) TO STDOUT (FORMAT binary)") as reading,
        into.copy("COPY plain_copy FROM STDIN (FORMAT binary)") as writing,
    ):
        for block in reading:
            writing.write(block)


def _copy_from_mariadb(old: Database, target: psycopg.Connection[tuple[object, ...]]) -> None:
    """The server's own client, its text piped into COPY: no value of this table needs an escape of its own."""
    command = ["mariadb", "--no-defaults", "-h", old.host, "-P", str(old.port), "-u", old.user, "--quick"]
    command += ["--skip-column-names", "--batch", old.database, "-e", f"SELECT {_COLUMNS} FROM orders"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as client,
        target.cursor() as into,
        into.copy("COPY plain_copy FROM STDIN") as writing,
    ):
        while client.stdout is not None and (block := client.stdout.read(1 << 18)):
            writing.write(block)
    if client.returncode:
        raise MigratorError("the mariadb client failed", cause=f"exit code {client.returncode}")


def _dsn(database: Database) -> str:
    return (
        f"host={database.host} port={database.port} dbname={database.database} user={database.user}"
        f" password={database.password}"
    )


# -- ours -------------------------------------------------------------------------------------------------------


def _dump_and_stream(bed: Bed, rows: int, rate: int, seconds: float, plain: float, report: Report) -> None:
    _rate(report, "dump with mapping, to a committed target", rows, dumped(bed).elapsed_s, plain)
    # Those of a million and less are in part, the short ones mostly, their start.
    for rows_a_commit, size in ((1000, rows), (1, 20_000)):
        touch(bed.old, 1, size, rows_a_commit)
        backlog = streamed(bed)
        what = f"streamed backlog, {rows_a_commit:,} row(s) a transaction, {size:,} changes"
        _rate(report, what, size, backlog.elapsed_s, plain)
        used = f"{backlog.processor_s / size * 1e6:,.1f} us"
        report.add("  processor time a change (all servers included)", used)

    parts = bed.parts()
    migration = Migration(parts)
    with OrderWritersApart(bed.old, rows, rate_per_s=rate) as writers:
        steady = Steady(migration, writers, seconds)
        migration.run(Stopping(), steady)
    achieved = steady.row_changes / steady.measured_s
    p50_s, p99_s = migration.progress.lag_quantiles_s() or (float("nan"), float("nan"))
    # MariaDB's log gives commit times in whole seconds, cut off: the lag shown is half a second too long on
    # average.
    exact = bed.old.kind != "mariadb"
    clock = (
        "source commit to target commit" if exact else "up to 1 s too long: the log's clock counts seconds"
    )
    for name, lag_s in (("p50", p50_s), ("p99", p99_s)):
        report.add(f"lag {name} at {achieved:,.0f} row changes/s", f"{lag_s * 1000:,.0f} ms", clock)


def _stream_long(engine: str, rows: int, plain: float, report: Report) -> None:
    """A backlog so long that its start is a small part of it, to a larger table with the default fillfactor.

    The first million changes pay for it: the JVM compiles what it runs (2 s of processor time), batches are small,
    and at the end there is nothing left to capture beside the last of them.
    """
    with fresh(engine, PROJECT, lambda old: create(old, rows)) as bed:
        dumped(bed)
        touch(bed.old, 1, rows, 1000)
        backlog = streamed(bed)
    _rate(report, f"long backlog, 1,000 rows a transaction, {rows:,} changes", rows, backlog.elapsed_s, plain)
    used = f"{backlog.processor_s / rows * 1e6:,.1f} us"
    report.add("  processor time a change (all servers included)", used)


def _stream_to_roomy_pages(engine: str, rows: int, plain: float, report: Report) -> None:
    """Long backlogs, one after the other, to a table with the room for updates that docs/how-to/pace.md advises."""
    with fresh(engine, PROJECT, lambda old: create(old, rows)) as bed:
        with bed.new.postgres(autocommit=True) as target:
            target.execute("ALTER TABLE purchase SET (fillfactor = 60)")
        dumped(bed)
        for number in (1, 2):
            touch(bed.old, 1, rows, 1000)
            what = f"backlog {number} to a table with fillfactor 60, {rows:,} changes"
            _rate(report, what, rows, streamed(bed).elapsed_s, plain)


def _rate(report: Report, what: str, rows: int, elapsed_s: float, plain: float) -> None:
    rate = rows / elapsed_s
    report.add(what, f"{rate:,.0f} rows/s", f"{rate / plain:.2f}x of the plain copy")


def _slow_down(engine: str, rows: int, report: Report) -> None:
    """Transactions/s of two unthrottled writers, alone and beside a dump, on the same machine."""
    with fresh(engine, PROJECT, lambda old: create(old, rows)) as bed:
        parts = bed.parts()
        parts.spark()
        with OrderWritersApart(bed.old, rows, rate_per_s=None) as writers:
            writers.start()
            started, moments = time.monotonic(), list[tuple[float, int]]()
            time.sleep(5)
            alone = writers.report().commits / (time.monotonic() - started)

            def all_dumped(now: Snapshot) -> bool:
                if now.captured is not None:
                    moments.append((time.monotonic(), writers.report().commits))
                return bool(now.dumps) and all(dump.done for dump in now.dumps)

            Migration(parts).run(Stopping(), all_dumped)
            writers.stop()
    (start, first), (end, last) = moments[0], moments[-1]
    beside = (last - first) / max(end - start, 1e-9)
    report.add("writers alone, unthrottled", f"{alone:,.0f} commits/s", "1.00x")
    report.add(
        "writers beside a dump at full speed",
        f"{beside:,.0f} commits/s",
        f"{beside / alone:.2f}x (all on one machine)",
    )


def _memory(engine: str, rows: int, report: Report) -> None:
    """Peak memory of ``migrator run`` with everything below it, for a table and one ten times as large."""
    peaks = []
    for times in (1, 10):
        with fresh(engine, PROJECT, partial(create, rows=rows * times)) as bed:
            command = [
                *python_m("migrator"),
                "run",
                "--plain",
                "--until",
                "caught-up",
                "--config",
                str(bed.config),
            ]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            with PeakMemory(process.pid) as memory:
                code = process.wait()
            if code:
                raise MigratorError(
                    "migrator run failed in the memory measurement", cause=f"exit code {code}"
                )
            peaks.append(memory.peak_bytes)
            ratio = f"{peaks[-1] / peaks[0]:.2f}x"
            report.add(
                f"peak memory, {rows * times:,} rows (Python, JVM, workers)",
                f"{peaks[-1] / 2**20:,.0f} MiB",
                ratio,
            )


def _judge(report: Report, events: int) -> Report:
    """The checkers over a made history that holds; in a process of its own, because peak memory is a process's."""
    click.echo(report.engine)
    command = [*python_m("verify.history.bench"), "--json", "--events", str(events)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise MigratorError("the judge's benchmark failed", cause=f"exit code {done.returncode}")
    found = json.loads(done.stdout)
    report.add(f"{found['events']:,} events, {found['held']} checkers", f"{found['elapsed_s']:.1f} s")
    report.add("events judged", f"{found['events'] / found['elapsed_s']:,.0f} events/s")
    report.add("peak memory, the making of the history included", f"{found['peak_bytes'] / 2**20:,.0f} MiB")
    return report


def marked(file: Path | None) -> Path | None:
    """The file, if it can take a table. Raises ``MigratorError``, before minutes are spent on measuring."""
    if file is None:
        return None
    text = file.read_text() if file.is_file() else None
    if text is None or _BEGIN not in text or _END not in text:
        raise MigratorError(
            f"{file} can't take the table",
            cause="there is no such file" if text is None else f"it lacks {_BEGIN} or {_END}",
            remedy=f"a Markdown file with the lines {_BEGIN} and {_END} where the table should stand",
        )
    return file


def write_reports(file: Path, reports: list[Report], rows: int) -> None:
    """Replaces what stands between the two marks of a ``marked`` file, and the picture beside it."""
    head, _, rest = file.read_text().partition(_BEGIN)
    tail = rest.partition(_END)[2]
    stamp = f"Measured on {datetime.now(UTC):%Y-%m-%d} on {machine()}; table of {rows:,} rows, ten columns."
    body = "\n".join(report.markdown() for report in reports)
    file.write_text(f"{head}{_BEGIN}\n\n{stamp}\n\n{body}\n{_END}{tail}")
    file.with_suffix(".svg").write_text(picture(body))
