"""Lines that say what a command does while nothing else is printed: with the time, on standard error."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from migrator import __version__

_SLOW = (
    "run", "verify", "repair", "check", "explain", "try", "sequences", "remap", "cutover", "rehearse", "dual-read",
    "reset", "schema", "demo", "story", "bench", "capturebench", "verifybench", "scenario", "playground",
)  # fmt: skip
"""Commands whose imports, servers or Spark take seconds before they can print anything."""
_AT_THE_END = ("status", "history", "events", "dump", "rows", "grants", "changetables", "init", "incident")
"""Commands that print all that they have at their end, which mostly comes within a second: scripts call them."""
_ENDLESS = {"--watch", "--follow"}
SOON_S = 0.7
"""Seconds after which one of these says that it begins, if it hasn't ended."""
_HELP = ("-h", "--help")


def stamped(text: str) -> str:
    """A line with the time: ISO 8601, UTC, whole seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}"


def say(text: str) -> None:
    """Prints the phase that a command is in."""
    click.echo(stamped(text), err=True)


def say_first(arguments: Sequence[str]) -> threading.Timer | None:
    """Prints a first line before a slow command is even imported; ``arguments``: behind ``migrator``.

    Returns what prints it later where the command may end by then, to be cancelled at its end; else None.
    """
    if not arguments or any(one in _HELP for one in arguments):
        return None
    line = f"migrator {__version__} {arguments[0]}: starting"
    if arguments[0] in _SLOW or (arguments[0] in _AT_THE_END and _ENDLESS & set(arguments)):
        say(line)
    elif arguments[0] in _AT_THE_END:
        later = threading.Timer(SOON_S, say, [line])
        later.daemon = True
        later.start()
        return later
    return None
