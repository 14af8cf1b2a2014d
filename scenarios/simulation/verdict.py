"""The summary of many seeds, and the full story of one failing seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scenarios.simulation.run import command, simulate
from scenarios.simulation.setup import Setup
from scenarios.simulation.shrink import shrink
from scenarios.simulation.world import decisions
from verify.history.history import History
from verify.history.judge import ALL, judge
from verify.history.result import CheckResult, Outcome
from verify.history.timeline import text

_STEPS_SHOWN = 40
"""Steps of a shrunk run that are printed; of the rest only the number is."""
STUCK = "the target never came to hold everything"


def failure(history: History, results: Sequence[CheckResult]) -> str:
    """Tells why a run fails, in a few words, or ""."""
    codes = [result.code for result in results if result.outcome is Outcome.VIOLATED]
    if history.description.halted:
        codes.append(f"halted: {history.description.halted}")
    elif not history.description.drained:
        codes.append(STUCK)
    return ", ".join(codes)


@dataclass(slots=True)
class Tally:
    """Verdicts of many seeds.

    Attributes:
        seeds: how many were run.
        counts: per checker how many seeds it judged so, and how many things it compared in all.
        faults: how many faults fired.
        failed: the first seed that fails, and why.
    """

    seeds: int = 0
    counts: dict[str, dict[Outcome, int]] = field(
        default_factory=lambda: {code: dict.fromkeys(Outcome, 0) for code in ALL}
    )
    checked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ALL, 0))
    faults: int = 0
    commits: int = 0
    failed: tuple[int, str] | None = None

    def add(self, seed: int, history: History) -> None:
        """Judges one more run."""
        results = judge(history)
        self.seeds += 1
        self.faults += history.faults.num_rows
        self.commits += history.commits.num_rows
        for result in results:
            self.counts[result.code][result.outcome] += 1
            self.checked[result.code] += result.checked
        why = failure(history, results)
        if why and self.failed is None:
            self.failed = (seed, why)

    @property
    def outcome(self) -> Outcome:
        """Violated if any seed is; unknown if a checker had nothing to check under any seed."""
        if self.failed is not None:
            return Outcome.VIOLATED
        if any(not counts[Outcome.HOLDS] for counts in self.counts.values()):
            return Outcome.UNKNOWN
        return Outcome.HOLDS

    def lines(self) -> Iterator[str]:
        """Yields the lines for a terminal."""
        yield f"{self.outcome.value}: {self.seeds} seeds, {self.commits} target commits, {self.faults} faults fired"
        for code, counts in self.counts.items():
            said = ", ".join(f"{number} {outcome.value}" for outcome, number in counts.items() if number)
            yield f"  {code}: {said}; {self.checked[code]} compared"


def explained(seed: int, setup: Setup) -> Iterator[str]:
    """A failing seed: its shrunk steps, the witnesses with their timelines, and what replays it."""
    results = judge(simulate(seed, setup))
    codes = [result.code for result in results if result.outcome is Outcome.VIOLATED]
    small = shrink(seed, setup, codes)
    steps: list[str] = []
    history = simulate(seed, setup, small, steps.append)
    results = judge(history)
    yield f"seed {seed}, setup {setup.name}: {failure(history, results)}"
    yield f"shrunk from {len(decisions(seed, setup))} decisions to {len(small)}; what they and the drain did:"
    yield from (f"  {line}" for line in steps[:_STEPS_SHOWN])
    if len(steps) > _STEPS_SHOWN:
        yield f"  ... and {len(steps) - _STEPS_SHOWN} more steps of the drain"
    for result in results:
        if result.outcome is Outcome.VIOLATED:
            yield ""
            yield f"{result.code}, {result.title}: {result.violations} of {result.checked} {result.unit}"
            yield from (f"  {line}" for line in text(result.witnesses[0]).splitlines())
    yield ""
    yield f"replay: {command(seed, setup.mutant)}"
