"""Lines that say what a command does while nothing else is printed: with the time, on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from migrator import __version__

_SLOW = ("run", "verify", "repair", "check", "explain", "try", "sequences", "remap", "cutover", "rehearse")
"""Commands whose imports, servers or Spark take seconds before they can print anything."""
_HELP = ("-h", "--help")


def stamped(text: str) -> str:
    """A line with the time: ISO 8601, UTC, whole seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}"


def say(text: str) -> None:
    """Prints the phase that a command is in."""
    click.echo(stamped(text), err=True)


def say_first(arguments: Sequence[str]) -> None:
    """Prints a first line before a slow command is even imported; ``arguments``: behind ``migrator``."""
    if arguments and arguments[0] in _SLOW and not any(one in _HELP for one in arguments):
        say(f"migrator {__version__} {arguments[0]}: starting")
