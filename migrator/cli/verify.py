"""``migrator verify``."""

from __future__ import annotations

from pathlib import Path

import click

from migrator import config as configuration
from migrator.cli.options import (
    conf_option,
    config_option,
    master_option,
    py_files_option,
    spark_options,
    with_py_files,
)
from migrator.config import Server
from migrator.wiring_spark import spark
from verify.report import repair_command, text_report
from verify.result import Verdict
from verify.run import verify as compare
from verify.settings import ServerSettings

EXIT_CODES = {Verdict.EQUAL: 0, Verdict.DIFFERENT: 1, Verdict.UNKNOWN: 3}


@click.command()
@config_option
@master_option
@conf_option
@py_files_option
@click.option(
    "--table", "tables", multiple=True, help="A target table to verify; may be repeated. Default: all."
)
@click.option(
    "--wait", "wait_s", default=60.0, show_default=True, help="Longest wait for the target, in seconds."
)
@click.option(
    "--max-rounds", default=8, show_default=True, help="Rounds at most, for keys that keep changing."
)
def verify(
    config: Path,
    master: str | None,
    conf: tuple[str, ...],
    py_files: tuple[Path, ...],
    tables: tuple[str, ...],
    wait_s: float,
    max_rounds: int,
) -> int:
    """Compare mapping(source) with the target exactly, also while both change.

    Exit codes: 0 equal, 1 different, 2 error, 3 unknown.
    """
    settings = with_py_files(configuration.load(config), py_files)
    result = compare(
        server_settings(settings.source, change_tables=settings.log == "change_tables"),
        server_settings(settings.target),
        settings.name,
        settings.mapping,
        tables or None,
        lambda: spark(settings, master, spark_options(conf)),
        settings.reports(),
        wait_s=wait_s,
        max_rounds=max_rounds,
    )
    click.echo(text_report(result, repair_command(result, settings.reports())))
    click.echo(f"reports: {settings.reports()}/verify.html, verify.json, verify.xml, verify.txt")
    return EXIT_CODES[result.verdict]


def server_settings(server: Server, change_tables: bool = False) -> ServerSettings:
    """One side of the project as the judge takes it."""
    return ServerSettings(
        kind=server.kind,
        host=server.host,
        port=server.port,
        database=server.database,
        user=server.user,
        password=server.password or "",
        schema=server.schema or "public",
        tls=server.tls,
        tls_ca=server.tls_ca,
        change_tables=change_tables,
    )
