"""Tables of a report that others fill: simulation, the kill table of broken variants, other tools."""

from __future__ import annotations

from dataclasses import dataclass

from verify.history.result import Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        cells: texts, one per column.
        outcome: colours the first cell, and counts for the verdict; None for rows that are not about this product.
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


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a report, as far as they exist.

    Attributes:
        kill: the broken variants in simulation; a violated row is a survivor.
        servers: the same on real servers.
        code: single changes to the code, and which tests noticed.
        simulation: many seeds, by checker.
        torture: what other tools did under the same hazards.
        waiting: scenarios that aren't played yet; they say nothing about this product.
    """

    kill: Table | None = None
    servers: Table | None = None
    code: Table | None = None
    simulation: Table | None = None
    torture: Table | None = None
    waiting: Table | None = None

    def all(self) -> tuple[Table, ...]:
        """Lists the tables in the order of the report."""
        found = (self.kill, self.servers, self.code, self.simulation, self.torture, self.waiting)
        return tuple(table for table in found if table is not None)

    def outcomes(self) -> set[Outcome]:
        """Collects the outcomes of all rows that have one."""
        return {row.outcome for table in self.all() for row in table.rows if row.outcome is not None}
