"""``migrator dual-read``: the same questions to the old and the new database."""

from __future__ import annotations

import time
from pathlib import Path

import click

from migrator.cli.options import SECONDS, config_option, print_report, report_json_option
from migrator.cli.verify import EXIT_CODES
from migrator.config import project as configuration
from migrator.config.engines import ENGINES
from migrator.wiring.gates.judge import sides
from migrator.wiring.gates.reads import keep_reads
from verify.dual_read.log_files import FORMATS
from verify.dual_read.queries import load_queries
from verify.dual_read.report import text_report, write_reports
from verify.dual_read.runner import CapturedLog, Plan
from verify.dual_read.runner import run as compare


@click.group("dual-read")
def dual_read() -> None:
    """Ask the old and the new database the same, and tell lag from bugs."""


@dual_read.command("run")
@config_option
@click.argument("queries", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--log", "log_file", type=click.Path(path_type=Path, dir_okay=False), default=None,
    help="Take parameters from this captured query log; its statements are never run.",
)  # fmt: skip
@click.option(
    "--log-format", type=click.Choice(FORMATS), default=None,
    help="mysql: general log file of MySQL or MariaDB; postgresql: csvlog. Default: the source's.",
)  # fmt: skip
@click.option(
    "--limit", default=1000, show_default=True, type=click.IntRange(1), help="Parameter sets per pair."
)
@click.option(
    "--repeat", default=1, show_default=True, type=click.IntRange(1), help="Times that each is asked."
)
@click.option(
    "--workers", default=4, show_default=True, type=click.IntRange(1, 64), help="Comparisons at a time."
)
@click.option("--seed", default=1, show_default=True, help="Of parameters, and of which side is asked first.")
@click.option(
    "--wait",
    "wait_s",
    default=120.0,
    show_default=True,
    type=SECONDS,
    help="Longest to follow a difference, in seconds.",
)
@click.option(
    "--timeout",
    "timeout_s",
    default=30.0,
    show_default=True,
    type=SECONDS,
    help="Longest for one query, in seconds.",
)
@report_json_option
def run(
    config: Path,
    queries: Path,
    log_file: Path | None,
    log_format: str | None,
    limit: int,
    repeat: int,
    workers: int,
    seed: int,
    wait_s: float,
    timeout_s: float,
    as_json: bool,
) -> int:
    """Compare the answers to the pairs of queries in the file QUERIES, while both sides change.

    Writes nothing on either side. What was found is kept for the gate of `migrator cutover reads`.
    """
    settings, began_s, pairs = configuration.load(config), time.time(), load_queries(queries)
    form = log_format or ENGINES[settings.source.kind].query_log
    result = compare(
        *sides(settings),
        settings.name,
        pairs,
        Plan(limit, repeat, workers, seed, wait_s, timeout_s),
        CapturedLog(log_file, form) if log_file else None,
    )
    settings.reports().mkdir(parents=True, exist_ok=True)
    write_reports(result, settings.reports())
    print_report(settings.reports(), "dual-read", [text_report(result)], as_json)
    keep_reads(settings, queries, pairs, result.pairs, began_s)
    return EXIT_CODES[result.verdict]
