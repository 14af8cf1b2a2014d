"""Options of ``migrator events`` that say where events go, beyond a file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from migrator.cli.options import Amount

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--name",
        default="",
        metavar="NAME",
        help="What the output's place is filed under, by default --output: with the former --output as its name, an"
        " output goes on at another address.",
    ),
    click.option(
        "--token-env", default="", metavar="VARIABLE", help="HTTP: environment variable with a token."
    ),
    click.option("--token-file", default="", metavar="FILE", help="HTTP: file with a token."),
    click.option(
        "--headers", type=_FILE, default=None, metavar="FILE", help="HTTP: file of headers, `Name: value`."
    ),
    click.option(
        "--ca",
        type=_FILE,
        default=None,
        metavar="FILE",
        help="HTTP: PEM file of the certificate's authority.",
    ),
    click.option(
        "--batch-events",
        type=click.IntRange(1, 1_000_000),
        default=1000,
        show_default=True,
        help="HTTP: most events of a batch.",
    ),
    click.option(
        "--batch-bytes",
        type=click.IntRange(1, 1 << 30),
        default=1 << 20,
        show_default=True,
        help="HTTP: most bytes of a batch; a larger event is a batch of its own.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=Amount(min=0.1, max=3600),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="HTTP: longest for one answer.",
    ),
    click.option(
        "--patience",
        "patience_s",
        type=Amount(min=0),
        default=900.0,
        show_default=True,
        metavar="SECONDS",
        help="HTTP, Kafka: who takes nothing is asked again for so long.",
    ),
    click.option(
        "--client",
        type=_FILE,
        default=None,
        metavar="FILE",
        help="Kafka: properties of the client (librdkafka's), `name=value`.",
    ),
    click.option(
        "--prefix", default="", help="Kafka: what topics' names begin with, by default the migration's name."
    ),
    click.option(
        "--schemas/--no-schemas",
        default=True,
        show_default=True,
        help="Kafka: whether each message carries its schema, as Connect's JSON converter has it.",
    ),
)


def options_of_outputs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command all of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
