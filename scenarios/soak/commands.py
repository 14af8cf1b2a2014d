"""``migrator scenario soak``. Exit codes: 0 bounded and equal, 1 something grows or differs, 2 error, 3 unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast, get_args

import click

from migrator.cli.signals import unwinding
from migrator.errors import ConfigError
from scenarios.resources import machine
from scenarios.scenario import Engine
from scenarios.soak import report
from scenarios.soak.judgement import judged
from scenarios.soak.play import Order, play
from verify.history.result import Outcome

_EXIT_CODES = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh])")


def seconds(text: str) -> float:
    """A duration: ``90s``, ``30m``, ``4h``. Raises ``ConfigError``."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise ConfigError(
            f"{text!r} is no duration", where="--for", remedy="write a number and s, m or h: 30m, 4h"
        )
    return float(found[1]) * _SECONDS[found[2]]


@click.command()
@click.option(
    "--for", "for_", default="4h", show_default=True, help="How long the writers write: 90s, 30m, 4h."
)
@click.option("--engine", type=click.Choice(get_args(Engine)), default="postgresql", show_default=True)
@click.option("--rate", default=100.0, show_default=True, help="Row changes per second.")
@click.option("--keys", default=20_000, show_default=True, help="Rows of the source before.")
@click.option("--seed", default=1, show_default=True, help="Seed of the writers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(".scenarios/soak"),
    show_default=True,
    help="Folder for soak.json, soak.txt and the run's output.",
)
def soak(for_: str, engine: str, rate: float, keys: int, seed: int, out: Path) -> int:
    """Let a migration go on for hours under writers, kills and dump requests; what it holds must stay bounded."""
    click.get_current_context().with_resource(unwinding())
    order = Order(seconds(for_), cast(Engine, engine), rate, keys, seed)
    out.mkdir(parents=True, exist_ok=True)
    played = play(order, out, click.echo)
    findings = judged(played.samples)
    summary = report.text(order, played, findings, machine())
    (out / "soak.txt").write_text(summary + "\n")
    (out / "soak.json").write_text(json.dumps(report.document(order, played, findings, machine())) + "\n")
    click.echo(summary)
    return _EXIT_CODES[report.outcome(played, findings)]
