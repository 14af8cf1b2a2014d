"""The account of a rehearsal as text, and as one self-contained HTML page."""

from __future__ import annotations

from html import escape

from scenarios.rehearsal.account import Account

_MACHINE = "Times and sizes are those of this machine and these rows: production's differ."
_STYLE = """
:root { color-scheme: light dark; } body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto;
  padding: 0 1rem; } table { border-collapse: collapse; } th, td { border: 1px solid #8884; padding: .25rem .6rem;
  text-align: left; vertical-align: top; } td.n { text-align: right; white-space: nowrap; }
  pre { white-space: pre-wrap; margin: 0; } .holds { color: #2e7d32; } .failed { color: #c62828; }
  .unknown { color: #b26a00; }
"""


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
    outcome = account.outcome()
    steps = "\n".join(
        f'<tr><td class="{one.outcome}">{one.outcome}</td><td class="n">{one.took_s:.1f} s</td>'
        f"<td>{escape(one.name)}</td><td><pre>{escape(chr(10).join(one.lines))}</pre></td></tr>"
        for one in account.steps
    )
    needs = "\n".join(
        f"<h3>{escape(heading)}</h3><pre>{escape(chr(10).join(found))}</pre>"
        for heading, found in account.needs.items()
    )
    notes = "".join(f"<li>{escape(line)}</li>" for line in account.named)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>rehearsal: {outcome}</title><style>{_STYLE}</style></head><body>"
        f'<h1>Rehearsal: <span class="{outcome}">{outcome}</span></h1>'
        f"<p>{_MACHINE}</p><table><tr><th></th><th>took</th><th>step</th><th>said</th></tr>{steps}</table>"
        f"<h2>What the real run will need</h2>{needs}<h2>Otherwise than in production</h2><ul>{notes}</ul>"
        "</body></html>\n"
    )
