"""The kill table: which checkers catch which broken variant."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from scenarios.mutants.catalog import Mutant
from scenarios.simulation.run import simulate
from verify.history.judge import judge
from verify.history.result import Outcome

CODES = ("D1", "D2", "D3", "D4", "D5", "D6", "D7")


@dataclass(frozen=True, slots=True)
class KillRow:
    """One mutant's line.

    Attributes:
        mutant: its name.
        broken: what is broken.
        must_catch: checkers that have to catch it.
        caught_by: for every checker that caught it, the number of seeds under which it did.
        halted: seeds under which the product itself stopped with a named error.
        first: the number of seeds until every checker of ``must_catch`` had caught it; None if one never did.
        killed: seeds under which any checker of ``must_catch`` caught it.
        seeds: seeds run.
        outcome: holds: killed; violated: survived; unknown: nothing was judged.
    """

    mutant: str
    broken: str
    must_catch: tuple[str, ...]
    caught_by: dict[str, int] = field(default_factory=dict)
    halted: int = 0
    first: int | None = None
    killed: int = 0
    seeds: int = 0
    outcome: Outcome = Outcome.UNKNOWN

    @property
    def rate(self) -> float:
        """Share of the seeds that kill it."""
        return self.killed / self.seeds if self.seeds else 0.0

    def document(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        return {**asdict(self), "outcome": self.outcome.value, "rate": self.rate}


def kill_row(mutant: Mutant, least: int = 0, first: int = 0) -> KillRow:
    """Runs a mutant until it is killed or its budget is spent, and at least ``least`` seeds, for the rate."""
    caught: dict[str, int] = {}
    checked: set[str] = set()
    until = None
    killed = halted = seeds = 0
    setup = mutant.apply()
    while seeds < least or (until is None and seeds < mutant.seeds):
        history = simulate(first + seeds, setup)
        seeds += 1
        halted += bool(history.description.halted)
        results = judge(history, CODES)
        checked |= {result.code for result in results if result.outcome is not Outcome.UNKNOWN}
        by = [result.code for result in results if result.outcome is Outcome.VIOLATED]
        for code in by:
            caught[code] = caught.get(code, 0) + 1
        killed += any(code in mutant.must_catch for code in by)
        if until is None and set(mutant.must_catch) <= set(caught):
            until = seeds
    outcome = (
        Outcome.HOLDS
        if until is not None and until <= mutant.seeds
        else Outcome.VIOLATED
        if set(mutant.must_catch) <= checked
        else Outcome.UNKNOWN
    )
    return KillRow(
        mutant.name, mutant.broken, mutant.must_catch, caught, halted, until, killed, seeds, outcome
    )


def heading() -> str:
    """The heading above the lines of the table."""
    return f"{'mutant':30} {'must catch':10} {'verdict':8} {'after':>6} {'rate':>6}  caught by (seeds)"


def line(row: KillRow) -> str:
    """A row for a terminal: ``after`` and ``rate`` count seeds."""
    said = {Outcome.HOLDS: "killed", Outcome.VIOLATED: "SURVIVED", Outcome.UNKNOWN: "unknown"}
    caught = [f"{code} {row.caught_by[code]}" for code in sorted(row.caught_by)]
    caught += [f"halted {row.halted}"] if row.halted else []
    after = "-" if row.first is None else str(row.first)
    return (
        f"{row.mutant:30} {' '.join(row.must_catch):10} {said[row.outcome]:8} {after:>6} {row.rate:>6.1%}"
        f"  {', '.join(caught) or 'nobody'} of {row.seeds}"
    )
