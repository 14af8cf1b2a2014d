"""The load's windows: a machine that gives less and less doesn't look like a load that loses by being read."""

from __future__ import annotations

import pytest

from scenarios.bench.capture.turns import Round, compared


def drifting(number: int, lost: float) -> Round:
    """Each window gives 20 less than the one before; beside dumps a share is lost on top."""
    tps = [1000.0 - 20 * (4 * number + at) for at in range(5)]
    tps[2] *= 1 - lost
    first, log, dump, log_again, last = ((each, 1000 / each) for each in tps)
    return Round(first, log, dump, log_again, last)


@pytest.mark.parametrize("lost", [0.0, 0.05])
def test_a_drift_is_no_loss(lost: float) -> None:
    turns = compared([drifting(number, lost) for number in range(5)])
    assert turns.dump_to_log.ratio == pytest.approx(1 - lost)
    assert turns.dump.ratio == pytest.approx(1 - lost)
    assert turns.log.ratio == pytest.approx(1)


def test_one_round_that_was_disturbed_does_not_count() -> None:
    rounds = [drifting(number, 0.02) for number in range(5)]
    rounds[3] = drifting(3, 0.6)
    turns = compared(rounds)
    assert turns.dump_to_log.ratio == pytest.approx(0.98)
    assert turns.dump_to_log.low <= turns.dump_to_log.ratio <= turns.dump_to_log.high
    assert turns.dump_to_log.shown() == "0.98x (0.98 to 0.98)"
