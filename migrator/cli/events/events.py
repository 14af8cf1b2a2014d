"""``migrator events``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from migrator.cli.events.options import options_of_outputs
from migrator.cli.options import Amount, config_option
from migrator.cli.signals import stop_on_signals
from migrator.config import project as configuration
from migrator.config.event_outputs import EventOptions
from migrator.errors import ConfigError
from migrator.run.commands.event_stream import EventStream
from migrator.run.failure import Stopping
from migrator.wiring.outputs.event_output import event_output

_COMMIT_S = {"json": 0.2, "parquet": 10.0, "http": 1.0, "kafka": 1.0}
_KAFKA_MOST_S = 60.0
"""A transaction that is open for two minutes is aborted by the brokers."""


@click.command()
@config_option
@click.option("--format", "kind", type=click.Choice(list(_COMMIT_S)), default="json", show_default=True)
@click.option(
    "--output",
    default="-",
    show_default=True,
    help="A file, a folder (Parquet), an address (HTTP), brokers (Kafka), or - for stdout.",
)
@click.option(
    "--from-segment",
    type=click.IntRange(min=1),
    default=None,
    help="Where a new output begins; the first segment by default.",
)
@click.option("--tables", default="", metavar="NAME,...", help="Only these source tables; all by default.")
@click.option("--follow", is_flag=True, help="Wait for new segments until stopped (Ctrl-C or SIGTERM).")
@click.option(
    "--commit-every",
    "commit_s",
    type=Amount(min=0.0, min_open=True),
    default=None,
    metavar="SECONDS",
    help="Make the output durable this often while events come (JSON lines: 0.2, Parquet: 10, a folder each,"
    " HTTP and Kafka: 1).",
)
@click.option(
    "--forget", is_flag=True, help="Give the output up: the event log keeps nothing for it any more."
)
@options_of_outputs
def events(
    config: Path,
    kind: str,
    output: str,
    from_segment: int | None,
    tables: str,
    follow: bool,
    commit_s: float | None,
    forget: bool,
    **more: Any,
) -> None:
    """Write the event log's ordered change events, also beside a run; started again, it goes on where it was."""
    settings = configuration.load(config)
    if output == "-" and (kind != "json" or forget):
        raise ConfigError(
            "standard output takes JSON lines only, and is never continued",
            where="--output -",
            remedy="name the output with --output",
        )
    if kind == "kafka" and (commit_s or 0) > _KAFKA_MOST_S:
        raise ConfigError(
            "a transaction of Kafka can't be open for so long",
            where=f"--commit-every {commit_s:g}",
            remedy=f"give at most {_KAFKA_MOST_S:g}",
        )
    stopping = Stopping()
    options = EventOptions(kind, output, **more)
    reader, sink = event_output(
        settings, options, stopping.wait, lambda text: click.echo(f"note: {text}", err=True)
    )
    try:
        if forget:
            known = reader.forget()
            sink.forget()
            _forget(known, options.name or output)
            return
        names = [name.strip() for name in tables.split(",") if name.strip()]
        stream = EventStream(reader, sink, names, from_segment, commit_s or _COMMIT_S[kind])
        stop_on_signals(stopping)
        done = stream.run(stopping, follow)
    finally:
        sink.close()
        reader.close()
    if done.cut_bytes:
        click.echo(f"removed an incomplete end of {done.cut_bytes:,} bytes, left by a kill", err=True)
    click.echo(f"wrote {done.events:,} events, up to segment {done.segment}", err=True)


def _forget(known: bool, output: str) -> None:
    if not known:
        raise ConfigError(
            "this is no output of this migration",
            where=f"--output {output}",
            remedy="look at `migrator status` for its outputs; --format and --name must be those it was begun with",
        )
    click.echo(f"the event log keeps nothing for {output} any more; the output itself stays as it is")
