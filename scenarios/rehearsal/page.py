"""The account of a rehearsal as text, and as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from scenarios.rehearsal.account import Account, Step
from verify.report import page as shared

_MACHINE = "Times and sizes are those of this machine and these rows: production's differ."


def text(account: Account) -> str:
    """The needs of the real run, what wasn't rehearsed, and the outcome."""
    lines = ["", f"What the real run will need. {_MACHINE}"]
    for heading, found in account.needs.items():
        lines += [f"  {heading}", *(f"    {line}" for line in found)]
    lines += ["", *(f"note: {line}" for line in account.named)]
    took = sum(one.took_s for one in account.steps)
    return "\n".join([*lines, f"{account.outcome()}: {len(account.steps)} steps, {took:.0f} s"])


def page(account: Account) -> str:
    """The whole page."""
    took = sum(one.took_s for one in account.steps)
    steps = "\n".join(map(_row, account.steps))
    needs = "\n".join(f"<h3>{escape(heading)}</h3>{_said(found)}" for heading, found in account.needs.items())
    notes = "".join(f"<li>{escape(line)}</li>" for line in account.named)
    outcome = account.outcome()
    return shared.page(
        f"rehearsal: {outcome}",
        [
            shared.header(
                outcome, "rehearsal", [("steps", str(len(account.steps))), ("took", f"{took:.0f} s")]
            ),
            f"<p>{_MACHINE}</p>",
            '<div class="wide"><table><tr><th></th><th>took</th><th>step</th><th>said</th></tr>',
            f"{steps}</table></div>",
            f"<h2>What the real run will need</h2>{needs}",
            f"<h2>Otherwise than in production</h2><ul>{notes}</ul>",
        ],
    )


def _row(step: Step) -> str:
    outcome = f'<span class="verdict {step.outcome}">{step.outcome}</span>'
    return (
        f'<tr><td>{outcome}</td><td class="n">{step.took_s:.1f} s</td>'
        f"<td>{escape(step.name)}</td><td>{_said(step.lines)}</td></tr>"
    )


def _said(lines: Sequence[str]) -> str:
    return f'<span class="v">{escape(chr(10).join(lines))}</span>'
