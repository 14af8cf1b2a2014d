"""The result as one self-contained HTML page: no scripts, no external resources, light and dark."""

from __future__ import annotations

from html import escape

from verify.result import Sample, TableResult, VerifyResult

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #c62828; --good: #2e7d32; --open: #b26a00; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784; --open: #ffb74d; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { font-weight: normal; opacity: .7; }
.equal { color: var(--good); } .different { color: var(--bad); } .unknown { color: var(--open); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
td.v, code { font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
tr.differs td { color: var(--bad); font-weight: 600; } .null { opacity: .5; font-style: italic; }
details { margin: .4rem 0; } summary { cursor: pointer; }
"""
_COUNTS = ("compared", "equal", "different", "missing", "extra", "duplicate", "set_aside")


def html_report(result: VerifyResult) -> str:
    """The whole page."""
    verdict = result.verdict.value
    body = [
        f'<h1><span class="{verdict}">{verdict.upper()}</span> <small>{escape(result.migration)}</small></h1>',
        f"<p><code>{escape(result.source)}</code> mapped, against <code>{escape(result.target)}</code><br>"
        f"{escape(result.started_at)}, {result.elapsed_s:.1f} s</p>",
        f"<p><b>What to do:</b> {escape(result.remedy)}</p>" if result.remedy else "",
        _overview(result),
        *[_table(table) for table in result.tables],
        _rounds(result),
        "<h2>What this check cannot detect</h2><ul>",
        *[f"<li>{escape(line)}</li>" for line in result.cannot_detect],
        "</ul>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>'
        f"{escape(result.migration)}: {verdict}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(filter(None, body))
        + "</body></html>\n"
    )


def _overview(result: VerifyResult) -> str:
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in ("table", "verdict", *_COUNTS))
    rows = []
    for table in result.tables:
        numbers = "".join(f'<td class="n">{getattr(table.counts, name):,}</td>' for name in _COUNTS)
        verdict = table.verdict.value
        rows.append(f'<tr><td>{escape(table.target)}</td><td class="{verdict}">{verdict}</td>{numbers}</tr>')
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _table(table: TableResult) -> str:
    parts = []
    if table.reason:
        parts.append(f"<p>{escape(table.reason)}</p>")
    if table.uncompared_columns:
        parts.append(
            f"<p>Not filled by the mapping, not compared: {escape(', '.join(table.uncompared_columns))}</p>"
        )
    if table.columns:
        parts.append(_columns(table))
    parts += [_sample(sample) for sample in table.samples]
    return f"<h2>{escape(table.target)}</h2>" + "\n".join(parts) if parts else ""


def _columns(table: TableResult) -> str:
    rows = []
    for column in table.columns:
        causes = "<br>".join(f"{escape(cause)} ({rows_:,})" for cause, rows_ in column.causes)
        examples = "<br>".join(f"{_value(a)} → {_value(b)}" for a, b in column.examples)
        rows.append(
            f'<tr><td>{escape(column.column)}</td><td class="n">{column.unequal_rows:,}</td>'
            f'<td class="n">{column.explained_rows:,}</td><td>{causes}</td><td class="v">{examples}</td></tr>'
        )
    head = "<tr><th>column</th><th>rows that differ</th><th>explained</th><th>likely cause</th><th>examples</th></tr>"
    note = f"<p>Causes come from at most {table.explained_rows_cap:,} rows; the counts are of all rows.</p>"
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>{note}'


def _sample(sample: Sample) -> str:
    key = ", ".join(f"{escape(name)}={_value(value)}" for name, value in sample.key)
    rows = "".join(
        f"<tr{' class=differs' if cell.differs else ''}><td>{escape(cell.column)}</td>"
        f'<td class="v">{_value(cell.mapped) if sample.rows_mapped else ""}</td>'
        f'<td class="v">{_value(cell.target) if sample.rows_target else ""}</td><td>{escape(cell.cause)}</td></tr>'
        for cell in sample.cells
    )
    old = "".join(
        f"<p>old row of {escape(row.table)}: "
        + ", ".join(f"<code>{escape(name)}={_value(value)}</code>" for name, value in row.values)
        + "</p>"
        for row in sample.old_rows
    )
    rows_seen = f"{sample.rows_mapped} mapped, {sample.rows_target} in the target"
    return (
        f"<details open><summary><b>{escape(sample.status)}</b> {key} ({rows_seen})</summary>{old}"
        f'<div class="wide"><table><tr><th>column</th><th>mapped row</th><th>target row</th><th>cause</th></tr>'
        f"{rows}</table></div></details>"
    )


def _rounds(result: VerifyResult) -> str:
    if not result.rounds:
        return ""
    rows = "".join(
        f'<tr><td class="n">{done.number}</td><td class="v">{escape(done.low.state)} … {escape(done.high.state)}</td>'
        f'<td class="v">{escape(done.ledger_state)}</td><td>{escape(done.detail)}</td>'
        f'<td class="n">{done.elapsed_s:.1f} s</td></tr>'
        for done in result.rounds
    )
    head = "<tr><th>round</th><th>source read in log</th><th>target at</th><th></th><th></th></tr>"
    return f'<h2>Rounds</h2><div class="wide"><table>{head}{rows}</table></div>'


def _value(value: str | None) -> str:
    return (
        '<span class="null">NULL</span>'
        if value is None
        else escape(value) or '<span class="null">empty</span>'
    )
