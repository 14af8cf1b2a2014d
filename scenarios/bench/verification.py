"""``migrator verifybench``: an equal table verified, beside reladiff and a plain datacompy of both whole tables.

PostgreSQL to PostgreSQL, a mapping that hands every column through: reladiff can do nothing else. Then the
project's own mapping of the same table, which computes five of ten columns, beside its own dump; that one
also from MariaDB or MySQL. Bytes are what the loopback interface carried meanwhile, so a quiet machine is
needed; servers and judges share its cores.

The source is vacuumed before the dump, as one that was filled long ago is. Verified is a target that the run has
vacuumed after its dump (``migrator.run.lead.upkeep``), and whose dirty pages are written: a minute later its
checkpoint would have seen to that. Both take time of their own, and are neither the dump's nor verify's.
Verified is several times, the others compare once: of half a second, a neighbour's load is a third.

Beside MySQL and MariaDB, PostgreSQL computes SHA-256. Servers as users have them do so by OpenSSL, and by the
processor's own instructions; that of the wheel has none, and takes eight times as long for it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import adbc_driver_postgresql.dbapi as adbc
import click
import datacompy
import pandas as pd
import psycopg

from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring.gates.judge import sides
from scenarios.bench.bed import Bed, Report, Watch, fresh
from scenarios.bench.orders.old_schema import create
from scenarios.bench.pipeline import PROJECT
from scenarios.database import Database
from scenarios.resources import machine
from verify.tables.run import verify
from verify.verdict import Verdict

_MAPPING = """
from pyspark.sql import DataFrame
from transforms import Mapping

mapping = Mapping()


@mapping.target("orders_copy", key="id")
def orders_copy(orders: DataFrame) -> DataFrame:
    return orders.select("*")
"""
_COLUMNS = ("customer", "items", "state", "comment", "total", "rebate", "created", "paid", "source")
_TIMES = 5
_LOOPBACK = Path("/sys/class/net/lo/statistics/rx_bytes")


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@click.option(
    "--mapping",
    type=click.Choice(["both", "plain", "computed"]),
    default="both",
    show_default=True,
    help="Hand every column through, compute some, or one after the other.",
)
@click.option(
    "--source",
    type=click.Choice(["postgresql", "mariadb", "mysql"]),
    default="postgresql",
    show_default=True,
    help="Another than PostgreSQL for computed columns only.",
)
@click.option(
    "--postgres",
    type=click.Choice(["17", "18"]),
    default="18",
    show_default=True,
    help="17 is Debian's, built with OpenSSL; 18 comes with `make demo`, built without.",
)
def verifybench(rows: int, mapping: str, source: str, postgres: str) -> None:
    """Measure `verify` on an equal table beside reladiff (if it is there) and datacompy; needs a quiet machine."""
    if mapping != "computed" and source != "postgresql":
        raise click.UsageError(f"from {source} only computed columns are measured: add --mapping computed")
    click.echo(f"machine: {machine()}")
    report = Report(source)
    if mapping != "computed":
        _plain(report, rows, int(postgres))
    if mapping != "plain":
        with fresh(source, PROJECT, lambda old: _filled(old, rows), int(postgres)) as bed:
            _beside_its_dump(bed, report, rows, "of computed columns, ")


def _plain(report: Report, rows: int, postgres: int) -> None:
    with fresh("postgresql", PROJECT, lambda old: _filled(old, rows), postgres) as bed:
        _hand_through(bed)
        ours = _beside_its_dump(bed, report, rows, "")
        others = {"datacompy of both whole tables": lambda: _datacompy(bed)}
        if subprocess.run([sys.executable, "-c", "import reladiff"], capture_output=True).returncode == 0:
            others["reladiff"] = lambda: _reladiff(bed)
        else:
            click.echo("  reladiff is not installed: pip install 'reladiff[postgresql]'")
        for name, compare in others.items():
            took = _measured(report, rows, name, compare)
            report.add("  its time", f"{took:,.2f} s", f"{took / ours:.1f}x of verify's time")


def _beside_its_dump(bed: Bed, report: Report, rows: int, what: str) -> float:
    """Dumps and verifies some times; gives the median of their seconds."""
    dump_s, upkeep_s = _dumped(bed)
    report.add(f"{what}dump of {rows:,} rows", f"{rows / dump_s:,.0f} rows/s", "1.00x of the dump's time")
    after = f"{upkeep_s / dump_s:.2f}x of the dump's time"
    report.add("  the target vacuumed after it", f"{upkeep_s:,.2f} s", after)
    _pages_written(bed)
    times = [_measured(report, rows, f"{what}migrator verify", lambda: _ours(bed)) for _ in range(_TIMES)]
    ours = statistics.median(times)
    report.add("  its time, the median", f"{ours:,.2f} s", f"{ours / dump_s:.3f}x of the dump's time")
    spread = f"{min(times) / dump_s:.3f}x to {max(times) / dump_s:.3f}x of the dump's time"
    report.add("  of all of them", f"{min(times):,.2f} to {max(times):,.2f} s", spread)
    return ours


def _filled(old: Database, rows: int) -> None:
    create(old, rows)
    if old.kind == "postgresql":
        with psycopg.connect(_uri(old), autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE) orders")


def _hand_through(bed: Bed) -> None:
    """A mapping and a target table of their own."""
    (bed.config.parent / "mapping.py").write_text(_MAPPING)
    with psycopg.connect(_uri(bed.new), autocommit=True) as target:
        target.execute(
            "CREATE TABLE orders_copy (id bigint PRIMARY KEY, customer bigint, items int, state text, comment text,"
            " total numeric(12,2), rebate float8, created timestamp, paid int2, source text)"
        )


def _dumped(bed: Bed) -> tuple[float, float]:
    """Seconds from the first chunk to the last commit, and from there to the end of the target's upkeep."""
    parts = bed.parts()
    parts.spark()  # the JVM's start is no part of it
    dumped, kept_up = Watch(lambda now: now.applied_dump_complete), Watch(lambda now: now.kept_up)

    def both(now: Snapshot) -> bool:
        done = dumped.elapsed_s > 0 or dumped(now)
        return kept_up(now) and done

    Migration(parts).run(Stopping(), both)
    return dumped.elapsed_s, kept_up.elapsed_s - dumped.elapsed_s


def _pages_written(bed: Bed) -> None:
    for database in (bed.old, bed.new):
        if database.kind != "postgresql":
            continue
        with psycopg.connect(_uri(database), autocommit=True) as connection:
            connection.execute("CHECKPOINT")


def _measured(report: Report, rows: int, name: str, compare: Callable[[], None]) -> float:
    before, started = int(_LOOPBACK.read_text()), time.monotonic()
    compare()
    elapsed_s = time.monotonic() - started
    read = int(_LOOPBACK.read_text()) - before
    report.add(name, f"{rows / elapsed_s:,.0f} rows/s", f"{read / 2**20:,.1f} MiB over the network")
    return elapsed_s


def _ours(bed: Bed) -> None:
    settings = configuration.load(bed.config)
    result = verify(
        *sides(settings),
        settings.name,
        settings.mapping,
        None,
        bed.parts().spark,
        settings.reports(),
        within_s=None,
    )
    click.echo(f"  {result.tables[0].method}")
    if result.verdict is not Verdict.EQUAL:
        raise MigratorError("the table isn't equal", cause=result.verdict.value)


def _datacompy(bed: Bed) -> None:
    frames: list[pd.DataFrame] = []
    for database, table in ((bed.old, "orders"), (bed.new, "orders_copy")):
        with adbc.connect(_uri(database)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id, {', '.join(_COLUMNS)} FROM {table}")
            frames.append(cursor.fetch_arrow_table().to_pandas())
    if not datacompy.PandasCompare(frames[0], frames[1], join_columns="id").matches():
        raise MigratorError("datacompy calls the tables different")


def _reladiff(bed: Bed) -> None:
    """Runs the command line of reladiff with its own defaults."""
    columns = [part for column in _COLUMNS for part in ("-c", column)]
    command = [
        sys.executable,
        "-m",
        "reladiff",
        _uri(bed.old),
        "orders",
        _uri(bed.new),
        "orders_copy",
        "-k",
        "id",
    ]
    done = subprocess.run([*command, *columns], capture_output=True, text=True)
    if done.returncode or done.stdout.strip():
        raise MigratorError(
            "reladiff failed, or calls the tables different", cause=(done.stderr or done.stdout)[-300:]
        )


def _uri(database: Database) -> str:
    login = f"{database.user}:{database.password}" if database.password else database.user
    return f"postgresql://{login}@{database.host}:{database.port}/{database.database}"
