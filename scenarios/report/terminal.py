"""The report as a few lines for a terminal: first runs with violations, then the ones that hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scenarios.play.bundle import HISTORY
from scenarios.report.facts import Fact
from scenarios.report.tables import Tables
from scenarios.report.verdict import CONTROL_SAID, ORDER, control, controls, in_order, verdict
from verify.history.result import Outcome


def text(facts: Sequence[Fact], tables: Tables) -> str:
    """The summary; a line per run, two more for a run that does not hold."""
    proper = in_order(facts)
    width = max((len(fact.name) for fact in proper), default=0)
    lines = []
    for fact in proper:
        run = fact.run
        checked = " ".join(f"{check.code}:{_sign(check.outcome)}" for check in run.checks)
        lines.append(
            f"{run.outcome.value:<8}  {fact.name:<{width}}  {run.elapsed_s:5.0f} s  {checked}".rstrip()
        )
        if run.outcome is not Outcome.HOLDS:
            lines.append(f"          {run.reason}")
            lines += [
                f"          {check.code}: {case.headline}"
                for check in run.checks
                for case in check.witnesses[:1]
            ]
            lines.append(f"          {how_again(fact)}")
    for fact in controls(facts):
        found = control(fact.run)
        lines.append(f"{CONTROL_SAID[found]:<8}  {fact.name} (broken variant)")
        if found is Outcome.UNKNOWN:
            lines.append(f"          {fact.run.reason}")
    for table in tables.all():
        judged = [row for row in table.rows if row.outcome is not None]
        wrong = [row.cells[0] for row in judged if row.outcome is not Outcome.HOLDS]
        if judged:
            lines.append(f"{table.title}: {len(judged) - len(wrong)} of {len(judged)} as they should be")
        lines += [f"  {name}" for name in wrong]
    for row in tables.waiting.rows if tables.waiting else ():
        lines.append(f"waits     {row.cells[0]}: {row.cells[2]}")
    counted = Counter(fact.run.outcome for fact in proper)
    said = (
        ", ".join(f"{counted[outcome]} {outcome.value}" for outcome in ORDER if counted[outcome])
        or "nothing was run"
    )
    lines.append(f"{verdict([fact.run for fact in facts], tables).value.upper()}: {said}")
    return "\n".join(lines)


def how_again(fact: Fact) -> str:
    """The way to look at a run again: its history is judged, or, without one, it is made again."""
    if (fact.run.bundle / HISTORY).is_dir():
        return f"replay: migrator scenario replay {fact.run.bundle}"
    return f"again: {fact.recorded.command}" if fact.recorded.command else f"bundle: {fact.run.bundle}"


def _sign(outcome: Outcome) -> str:
    return {Outcome.HOLDS: "ok", Outcome.VIOLATED: "VIOLATED", Outcome.UNKNOWN: "?"}[outcome]
