"""The report as one self-contained HTML page: verdicts first; no scripts, no external resources, light and dark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from scenarios.report import chart
from scenarios.report.blind_spots import BLIND_SPOTS
from scenarios.report.details import detail
from scenarios.report.facts import Fact
from scenarios.report.tables import Table, Tables
from scenarios.report.verdict import CONTROL_SAID, ORDER, control, controls, in_order, verdict
from verify.history.result import CheckResult, Outcome

SIGNS = {Outcome.HOLDS: "✓", Outcome.VIOLATED: "✗", Outcome.UNKNOWN: "?"}
CODES = tuple(f"D{number}" for number in range(1, 9))
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #c62828; --good: #2e7d32; --open: #b26a00;
  --written: #3b78c3; --applied: #c2571a; --lag: #7b4fb5; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784; --open: #ffb74d;
  --written: #7fb0ea; --applied: #f0a068; --lag: #bfa0ea; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.25; } h1 small { display: block; font-size: 1rem; font-weight: normal; opacity: .7; }
h2 { margin-top: 2.2rem; }
.holds { color: var(--good); } .violated { color: var(--bad); } .unknown { color: var(--open); }
.wide { overflow-x: auto; } a { color: inherit; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); } td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.c { text-align: center; white-space: nowrap; padding: .25rem .35rem; font-variant-numeric: tabular-nums; }
td small, summary small { opacity: .75; display: block; } td.t { min-width: 15rem; }
small.violated, small.unknown { opacity: 1; }
pre, code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .5rem .7rem; overflow-x: auto; border-radius: 4px; white-space: pre-wrap; }
details.run { border-top: 1px solid var(--line); padding: .5rem 0; } summary { cursor: pointer; }
.witness { border-left: 3px solid var(--bad); padding-left: .8rem; margin: .8rem 0; }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .6rem; } th, td { padding: .2rem .4rem; } }
"""


def page(facts: Sequence[Fact], tables: Tables, made_at: str, version: str) -> str:
    """The whole page."""
    outcome = verdict([fact.run for fact in facts], tables)
    proper = in_order(facts)
    body = [
        _head(facts, outcome, made_at, version),
        _overview(proper),
        _controls(controls(facts)),
        *map(_table, tables.all()),
        _blind_spots(),
        "<h2>Runs, one by one</h2>" + chart.KEY if proper else "",
        *[detail(fact, _anchor(number)) for number, fact in enumerate(proper)],
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>'
        f"scenarios: {outcome.value}</title><style>{_STYLE}{chart.STYLE}</style></head><body>"
        + "\n".join(filter(None, body))
        + "</body></html>\n"
    )


def _head(facts: Sequence[Fact], outcome: Outcome, made_at: str, version: str) -> str:
    proper = in_order(facts)
    counted = Counter(fact.run.outcome for fact in proper)
    said = [
        f'<span class="{shown.value}">{counted[shown]} {shown.value}</span>'
        for shown in ORDER
        if counted[shown]
    ]
    tried = controls(facts)
    if tried:
        caught = sum(control(fact.run) is Outcome.HOLDS for fact in tried)
        kind = control(tried[0].run)
        said.append(f'<span class="{kind.value}">{caught} of {len(tried)} broken variants caught</span>')
    totals: Counter[str] = Counter()
    for fact in facts:
        totals.update(dict(fact.recorded.counts))
    totals["faults fired"] = sum(fact.fired for fact in facts)
    sums = ", ".join(f"{number:,} {name}" for name, number in totals.items())
    return (
        f'<h1><span class="{outcome.value}">{outcome.value.upper()}</span>'
        f"<small>{len(facts)} scenario runs: {', '.join(said) or 'none'}</small></h1>"
        f"<p>{escape(sums)}<br>{escape(made_at)}, version {escape(version)}</p>"
    )


def _overview(facts: Sequence[Fact]) -> str:
    head = "".join(
        f"<th>{escape(name)}</th>"
        for name in ("verdict", "scenario", "ending", "faults", *CODES, "s", "seed")
    )
    return (
        f'<h2>Verdicts</h2><div class="wide"><table><tr>{head}</tr>'
        + "".join(_row(number, fact) for number, fact in enumerate(facts))
        + "</table></div><p>A cell says how many things a checker compared, or contradict it."
        " ✓ holds, ✗ violated, ? unknown, which is"
        " not a pass. D1 no time travel, D2 monotonic writes, D3 no lost update, D4 no phantom and no resurrection,"
        " D5 exactly-once effect, D6 atomic consistent cut, D7 convergence, D8 the run was not vacuous.</p>"
    )


def _row(number: int, fact: Fact) -> str:
    run = fact.run
    by_code = {check.code: check for check in run.checks}
    why = run.reason
    right = "holds" if fact.ending_is_right() else "violated"
    return (
        f'<tr><td class="{run.outcome.value}"><b>{run.outcome.value}</b></td>'
        f'<td class="t"><a href="#{_anchor(number)}">{escape(fact.name)}</a>'
        f"<small>{escape(run.scenario.title)}</small>"
        + (f'<small class="{run.outcome.value}">{escape(why)}</small>' if why else "")
        + f'</td><td class="{right}">{escape(run.ending)}</td>'
        f'<td class="c">{fact.fired} of {len(run.scenario.faults)}</td>'
        + "".join(_cell(by_code.get(code)) for code in CODES)
        + f'<td class="n">{run.elapsed_s:.0f}</td><td class="n">{run.seed}</td></tr>'
    )


def _cell(check: CheckResult | None) -> str:
    if check is None:
        return '<td class="c">–</td>'
    number = check.violations if check.outcome is Outcome.VIOLATED else check.checked
    tooltip = f"{check.title}: {check.checked:,} {check.unit}"
    sign = SIGNS[check.outcome]
    return f'<td class="c {check.outcome.value}" title="{escape(tooltip)}">{sign} {_short(number)}</td>'


def _short(number: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def _controls(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    rows = []
    for fact in facts:
        found = control(fact.run)
        by = ", ".join(check.code for check in fact.run.checks if check.outcome is Outcome.VIOLATED)
        rows.append(
            f'<tr><td class="{found.value}"><b>{CONTROL_SAID[found]}</b></td>'
            f"<td>{escape(fact.run.mutant)}</td><td>{escape(fact.run.scenario.name)} [{escape(fact.run.engine)}]</td>"
            f'<td>{by or "–"}</td><td class="n">{fact.run.seed}</td></tr>'
        )
    head = "<tr><th></th><th>broken variant</th><th>scenario</th><th>caught by</th><th>seed</th></tr>"
    return (
        "<h2>Broken variants on real servers</h2><p>The same checkers must fail when the product is broken on"
        f' purpose.</p><div class="wide"><table>{head}{"".join(rows)}</table></div>'
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    rows = []
    for row in table.rows:
        kind = "" if row.outcome is None else f' class="{row.outcome.value}"'
        first, *rest = (escape(cell) for cell in row.cells)
        rows.append(f"<tr><td{kind}>{first}</td>" + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>")
    return (
        f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>"
        f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
    )


def _blind_spots() -> str:
    rows = "".join(f"<tr><td>{escape(what)}</td><td>{escape(why)}</td></tr>" for what, why in BLIND_SPOTS)
    return (
        '<h2>What these runs cannot detect</h2><div class="wide"><table><tr><th>not seen</th><th>why, and who sees it'
        f"</th></tr>{rows}</table></div>"
    )


def _anchor(number: int) -> str:
    return f"run{number + 1}"
