"""Judges a recorded run again. No server, no Spark: the history alone decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from migrator.errors import VerifyError
from scenarios.play import bundle, verified
from scenarios.play.cut_over.play import STEPS
from scenarios.play.run_result import REFUSED, RunResult, codes, doubts, verdict
from verify.history.history import load_history
from verify.history.judge import judge
from verify.two_sides import checks as two_sides
from verify.two_sides import file


@dataclass(frozen=True, slots=True)
class Replay:
    """The recorded result and the one found now."""

    recorded: RunResult
    found: RunResult

    @property
    def same(self) -> bool:
        """Returns whether every verdict is the recorded one, with the same counts."""
        return self.recorded.outcome is self.found.outcome and self.recorded.checks == self.found.checks


def replay(folder: Path) -> Replay:
    """Judges a bundle again. Raises ``VerifyError`` for a folder that is no bundle or has no history.

    The ending, missed segments, the verifier's answer and how an operator's words ended are not in the history: they
    stay as recorded.
    """
    recorded = bundle.read_result(folder)
    if recorded.ending == REFUSED:
        raise VerifyError(
            "there is nothing to judge again: the run was refused before anything was written",
            where=str(folder),
            remedy="run it again with the command in its result.json",
        )
    if recorded.scenario.cut_over is not None:
        wanted = recorded.scenario.expect.checks
        checks = tuple(one for one in two_sides.judge(file.load(folder)) if one.code in wanted)
    else:
        history = load_history(folder / bundle.HISTORY)
        checks = judge(history, codes(recorded.scenario.expect, history.description.tables))
    checks += tuple(check for check in recorded.checks if check.code in (verified.CODE, STEPS.code))
    expect = recorded.scenario.expect
    found = verdict(expect, recorded.ending, recorded.error, checks, doubts(expect, recorded.counts))
    return Replay(recorded, replace(recorded, checks=checks, outcome=found.outcome, reason=found.reason))
