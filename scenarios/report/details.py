"""One run in full: what was expected, the faults, the drawing, every checker, its witnesses, how to replay it."""

from __future__ import annotations

from html import escape

from scenarios.hazards import HAZARDS
from scenarios.play.bundle import HISTORY
from scenarios.report import chart
from scenarios.report.facts import Fact, FaultFact
from verify.history import timeline
from verify.history.result import CheckResult, Outcome, WitnessCase


def detail(fact: Fact, anchor: str) -> str:
    """A section that is open if there is something to look into."""
    run = fact.run
    state = "" if run.outcome is Outcome.HOLDS else " open"
    why = run.reason
    parts = [
        f"<summary><b class={run.outcome.value}>{run.outcome.value}</b> {escape(fact.name)}"
        f"<small>{escape(run.scenario.title)}</small></summary>",
        f'<p class="{run.outcome.value}">{escape(why)}</p>' if why else "",
        _ending(fact),
        _drawing(fact),
        _faults(fact.recorded.faults),
        _checks(run.checks),
        *[_witness(check, case) for check in run.checks for case in check.witnesses],
        _replay(fact),
    ]
    return f'<details class="run" id="{anchor}"{state}>' + "\n".join(filter(None, parts)) + "</details>"


def _ending(fact: Fact) -> str:
    run, expect = fact.run, fact.run.scenario.expect
    wanted = f"{expect.ending}" + (f", with an error like “{expect.error}”" if expect.error else "")
    found = run.ending + (f": {run.error}" if run.error else "")
    hazards = "; ".join(f"{number} {HAZARDS.get(number, '')}".strip() for number in run.scenario.hazards)
    return (
        f"<p>Expected: {escape(wanted)}. Found: {escape(found)}."
        + (f" Hazard: {hazards}." if hazards else "")
        + "</p>"
    )


def _drawing(fact: Fact) -> str:
    recorded = fact.recorded
    if recorded.series is None:
        return f"<p>No drawing: {escape(recorded.problem or 'nothing happened')}.</p>"
    drawn = chart.chart(recorded.series, recorded.faults, f"{fact.name}: throughput, lag and faults")
    return f'<div class="wide">{drawn}</div>'


def _faults(faults: tuple[FaultFact, ...]) -> str:
    if not faults:
        return ""
    rows = "".join(
        f'<tr><td class="n">{number}</td><td>{escape(fault.name)}</td><td>{escape(fault.point)}</td>'
        f'<td class="{"holds" if fault.fired else "unknown"}">{"fired" if fault.fired else "did not fire"}</td>'
        f'<td class="n">{_moment(fault.fired_s)}</td><td class="n">{_moment(fault.healed_s)}</td>'
        f"<td>{escape(fault.detail)}</td></tr>"
        for number, fault in enumerate(faults, 1)
    )
    head = (
        "<tr><th></th><th>fault</th><th>point</th><th></th><th>fired at</th><th>healed at</th><th></th></tr>"
    )
    return f'<div class="wide"><table>{head}{rows}</table></div>'


def _moment(second: float | None) -> str:
    return "" if second is None else f"{second:.2f} s"


def _checks(checks: tuple[CheckResult, ...]) -> str:
    if not checks:
        return ""
    rows = "".join(
        f"<tr><td>{escape(check.code)}</td><td>{escape(check.title)}</td>"
        f'<td class="{check.outcome.value}"><b>{check.outcome.value}</b></td><td class="n">{check.checked:,}</td>'
        f'<td>{escape(check.unit)}</td><td class="n">{check.violations:,}</td><td>{escape(check.reason)}</td></tr>'
        for check in checks
    )
    names = ("", "checker", "verdict", "compared", "of", "violations", "")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _witness(check: CheckResult, case: WitnessCase) -> str:
    steps = "".join(f"<li>{escape(step)}</li>" for step in case.because)
    return (
        f'<div class="witness"><p><b>{escape(check.code)}: {escape(case.headline)}</b></p>'
        + (f"<ol>{steps}</ol>" if steps else "")
        + (f'<div class="wide">{timeline.svg(case)}</div>' if case.timeline else "")
        + "</div>"
    )


def _replay(fact: Fact) -> str:
    run, recorded = fact.run, fact.recorded
    versions = ", ".join(f"{name} {version}" for name, version in recorded.versions)
    kept = (run.bundle / HISTORY).is_dir()
    lines = [f"migrator scenario replay {run.bundle}"] if kept or not recorded.command else []
    if recorded.command:
        lines.append(recorded.command)
    counts = ", ".join(f"{number:,} {name}" for name, number in recorded.counts)
    return (
        (f"<p>{escape(counts)}.</p>" if counts else "")
        + f"<p>{'Judge the recorded history again (no servers needed); r' if kept else 'R'}un it again:</p><pre>"
        + escape("\n".join(lines))
        + f"</pre><p>Seed {run.seed}{escape('; ' + versions if versions else '')}.</p>"
    )
