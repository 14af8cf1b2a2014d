"""One thing that ``migrator check`` says: as a value, as lines for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import click

from migrator.errors import MigratorError, readable
from migrator.model.finding import Finding

FORMAT = 1


class Outcome(Enum):
    """The meaning of an item for a run: a refusal stands in its way, a loss in the way of a cut-over."""

    REFUSES = "refuses"
    LOSSY = "lossy"
    WARNING = "warning"
    OK = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"


_COLOURS = {Outcome.REFUSES: "red", Outcome.LOSSY: "red", Outcome.WARNING: "yellow"}
_CODES = {Outcome.REFUSES: 2, Outcome.LOSSY: 1, Outcome.UNKNOWN: 3}
"""The exit codes by outcome; the first one that occurs decides."""
_WIDTH = max(len(outcome.value) for outcome in Outcome) + 2
_DEEP = " " * (_WIDTH + 4)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at, or that stands in the way.

    Attributes:
        outcome: what it means.
        check: short name of the check, e.g. ``wal_level``.
        subject: the server, table or column concerned; empty where the text names it.
        text: what is so, with the value found.
        where: setting, file and line, table, row or position; empty where the subject says it.
        cause: the reason, in the words of the server or library where there are any.
        remedy: what to do, with the exact statement where there is one.
        details: what belongs to it, a line each: a target's grains, a table's columns.
    """

    outcome: Outcome
    check: str
    subject: str
    text: str
    where: str = ""
    cause: str = ""
    remedy: str = ""
    details: tuple[str, ...] = ()


def of_finding(finding: Finding) -> Item:
    """A preflight finding."""
    outcome = Outcome.REFUSES if finding.fatal else Outcome.WARNING
    return Item(outcome, finding.check, finding.subject, finding.problem, remedy=finding.remedy)


def of_error(check: str, error: MigratorError, subject: str = "") -> Item:
    """A named failure that stands in the way."""
    return Item(Outcome.REFUSES, check, subject, error.what, error.where, error.cause, error.remedy)


def lines(item: Item) -> Iterator[str]:
    """The item for people: one with a remedy has its text below its subject, any other beside it."""
    said = MigratorError(item.text, where=item.where, cause=item.cause, remedy=item.remedy).lines()
    said = [part for line in said for part in line.split("\n")]
    if not item.subject:
        head, rest = said[0], said[1:]
    elif item.remedy:
        head, rest = item.subject, said
    else:
        head, rest = f"{item.subject}: {said[0]}", said[1:]
    label = item.outcome.value
    if colour := _COLOURS.get(item.outcome):
        label = click.style(label, fg=colour)
    yield f"{label}{' ' * (_WIDTH - len(item.outcome.value))}{item.check}: {head}"
    yield from (f"    {line}" for line in rest)
    yield from (f"{_DEEP}{line}" for line in item.details)


def print_item(item: Item) -> None:
    """Prints the item for people."""
    click.echo("\n".join(lines(item)))


def document(migration: str, items: Sequence[Item], exit_code: int) -> dict[str, Any]:
    """The document of `migrator check --json` (docs/schemas/check.schema.json)."""
    return {
        "format": FORMAT,
        "migration": migration,
        "exit_code": exit_code,
        "refusals": count(items, Outcome.REFUSES),
        "warnings": count(items, Outcome.WARNING),
        "items": [fields(item) for item in items],
    }


def fields(item: Item) -> dict[str, Any]:
    """An item within a document."""
    return asdict(item) | {"outcome": item.outcome.value, "remedy": readable(item.remedy)}


def exit_code(items: Sequence[Item]) -> int:
    """The exit code of all items together."""
    outcomes = {item.outcome for item in items}
    return next((code for outcome, code in _CODES.items() if outcome in outcomes), 0)


def count(items: Sequence[Item], outcome: Outcome) -> int:
    """The number of items of one outcome."""
    return sum(item.outcome is outcome for item in items)
