"""The whole pipeline under thousands of seeded interleavings, and what makes their verdict worth something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrator.run.apply.loop import ApplyLoop
from scenarios.mutants.catalog import mutant
from scenarios.simulation.run import simulate
from scenarios.simulation.setup import SETUPS, WATERMARK, WITNESS, Patch, Setup, setup_of
from scenarios.simulation.shrink import shrink, smallest
from scenarios.simulation.verdict import Tally, explained
from scenarios.simulation.world import FAULTS, Decision, decisions
from verify.history.history import History
from verify.history.judge import judge
from verify.history.result import Outcome

SEEDS = 2_000
"""Per change, over all setups."""
SLICES = 8
EACH_TIME = 2
"""The slice that `make test` plays; the first two are the seeds of `make quickscenarios`."""


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[] if part == EACH_TIME else [pytest.mark.slow]) for part in range(SLICES)],
)
def test_no_interleaving_breaks_a_promise(part: int) -> None:
    tally = Tally()
    for seed in range(part * SEEDS // SLICES, (part + 1) * SEEDS // SLICES):
        setup = setup_of(seed)
        tally.add(seed, simulate(seed, setup))
        assert tally.failed is None, "\n".join(explained(seed, setup))
    assert tally.outcome is Outcome.HOLDS, "\n".join(tally.lines())
    # the races that matter must have occurred, else the runs prove nothing
    assert tally.counts["D8"][Outcome.HOLDS] > 0.7 * tally.seeds
    assert tally.faults > tally.seeds
    assert tally.checked["D6"] > 10 * tally.seeds


def test_every_fault_fires_and_leaders_change() -> None:
    names: set[tuple[str, str]] = set()
    epochs = unknown = 0
    for seed in range(100):
        history = simulate(seed, WITNESS)
        names |= set(
            zip(history.faults["name"].to_pylist(), history.faults["point"].to_pylist(), strict=True)
        )
        epochs = max(epochs, len(set(history.commits["epoch"].to_pylist())))
        unknown += "unknown" in history.operations["outcome"].to_pylist()
    assert {name for name, _ in names} == {"crash", "cut", "lease lost"}
    assert {point for name, point in names if name == "cut"} == {
        "log",
        "chunk",
        "target.merged",
        "target.committed",
    }
    assert {"capture.chunk", "capture.segment", "target.merged"} <= {point for _, point in names}
    assert epochs > 2
    assert unknown


def test_a_seed_is_one_history() -> None:
    for seed in (3, 4):
        one, two = simulate(seed, setup_of(seed)), simulate(seed, setup_of(seed))
        assert all(getattr(one, name).equals(getattr(two, name)) for name in ("log", "changes", "deliveries"))
    assert not simulate(3, WITNESS).log.equals(simulate(4, WITNESS).log)


def test_setups_differ_in_what_they_are_for() -> None:
    assert {setup.witness for setup in SETUPS} == {setup.ordered for setup in SETUPS} == {True, False}
    quiet = next(setup for setup in SETUPS if not setup.faults)
    assert not {actor for actor, _ in decisions(1, quiet)} & set(FAULTS)


def test_a_mutant_breaks_nothing_after_its_run() -> None:
    broken = mutant("reconciliation-off").apply(WATERMARK)
    before = outcomes(simulate(2, WATERMARK))
    simulate(2, broken)
    assert outcomes(simulate(2, WATERMARK)) == before


def outcomes(history: History) -> list[tuple[str, Outcome, int]]:
    return [(result.code, result.outcome, result.checked) for result in judge(history)]


# -- shrinking
# ------------------------------------------------------------------------------------------------------


def failing_seed(setup: Setup, code: str) -> int:
    return next(
        seed
        for seed in range(100)
        if any(result.outcome is Outcome.VIOLATED for result in judge(simulate(seed, setup), [code]))
    )


def test_a_failure_is_shrunk_and_replays() -> None:
    setup = mutant("reconciliation-off").apply()
    seed = failing_seed(setup, "D1")
    small = shrink(seed, setup, ["D1"])
    assert len(small) < 25 < len(decisions(seed, setup))
    assert [result.outcome for result in judge(simulate(seed, setup, small), ["D1"])] == [Outcome.VIOLATED]
    assert [result.outcome for result in judge(simulate(seed, WITNESS, small), ["D1"])] == [Outcome.HOLDS]
    told = "\n".join(explained(seed, setup))
    assert "D1, no time travel" in told
    assert f"migrator scenario simulate --first {seed} --seeds 1 --mutant reconciliation-off" in told


def test_shrinking_finds_the_few_that_matter() -> None:
    noise: list[Decision] = [(f"actor {number % 7}", number + 1) for number in range(200)]

    def fails(taken: Sequence[Decision]) -> bool:
        actors = [actor for actor, _ in taken]
        return actors.count("actor 3") >= 2 and ("actor 5", 48) in taken

    assert sorted(smallest(noise, fails)) == [("actor 3", 0), ("actor 3", 0), ("actor 5", 48)]
    assert fails(smallest(noise, fails, runs=5))


# -- the verdict
# ----------------------------------------------------------------------------------------------------


def test_a_run_in_which_nothing_is_written_is_unknown() -> None:
    tally = Tally()
    tally.add(0, simulate(0, WITNESS, [("lead", 0)] * 6))
    assert tally.outcome is Outcome.UNKNOWN


def test_a_pipeline_that_never_catches_up_fails() -> None:
    idle = replace(WITNESS, patches=(Patch(ApplyLoop, "apply", lambda self, mapped: False),))
    tally = Tally()
    tally.add(0, simulate(0, idle))
    assert tally.outcome is Outcome.VIOLATED
    assert tally.failed == (0, "the target never came to hold everything")
