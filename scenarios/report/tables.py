"""A table of a report that others fill: the kill table of broken variants, the same hazards against other tools."""

from __future__ import annotations

from dataclasses import dataclass

from verify.history.result import Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        cells: texts, one per column.
        outcome: colours the first cell; a violated row of the kill table (a survivor) is a failure in JUnit, too.
    """

    cells: tuple[str, ...]
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table with a sentence that says how to read it."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
