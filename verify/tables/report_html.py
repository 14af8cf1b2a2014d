"""The result of a verification as one self-contained HTML page. ``verify.report.page`` has what our pages share."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from verify.report import page
from verify.tables.findings.likely import likely_causes
from verify.tables.result import Sample, TableResult, VerifyResult
from verify.verdict import Verdict

_SEGMENTS = ("equal", "different", "missing", "extra", "duplicate", "set_aside", "bad_rows")
_WORST_FIRST = (Verdict.DIFFERENT, Verdict.UNKNOWN, Verdict.EQUAL)
_OPEN_MAX = 10
"""Entries of the difference browser that are open at first, if there are no more."""


def html_report(result: VerifyResult, repair: str = "") -> str:
    """The whole page. ``repair`` is the command that mends what differs, or empty."""
    verdict = result.verdict.value
    compared = sum(table.counts.compared for table in result.tables)
    facts = [
        ("source", result.source),
        ("target", result.target),
        ("compared", f"{compared:,} keys, mapping(source) against the target"),
        ("when", f"{result.started_at}, {result.elapsed_s:.1f} s{_of(result)}"),
    ]
    body = [
        page.header(verdict, result.migration, facts),
        _what_to_do(result, repair),
        "<h2>Tables</h2>",
        f'<div class="cards">{"".join(map(_card, worst_first(result.tables)))}</div>',
        _causes(result),
        _differences(result),
        _columns(result),
        _rounds(result),
        *(["<h2>What was done lately</h2>", page.bullets(result.acts)] if result.acts else []),
        "<h2>What this check cannot detect</h2>",
        page.bullets(result.cannot_detect),
    ]
    return page.page(f"{verdict}: {result.migration}", body)


def worst_first(tables: Iterable[TableResult]) -> list[TableResult]:
    """Returns what differs before what isn't known, and that before what is equal; each in the order it had."""
    return sorted(tables, key=lambda table: _WORST_FIRST.index(table.verdict))


def _of(result: VerifyResult) -> str:
    return "" if result.within_s is None else f" of {result.within_s:g} s (--within)"


def _what_to_do(result: VerifyResult, repair: str) -> str:
    if not result.remedy and not repair:
        return ""
    words = f"<p>{escape(result.remedy)}</p>" if result.remedy else ""
    if repair:
        words += f"<p>Shows what a repair would do; with <code>--apply</code> it does it.</p>{page.command(repair)}"
    return page.panel("What to do", words)


def _segments(table: TableResult) -> list[page.Segment]:
    return [(name.replace("_", "-"), getattr(table.counts, name)) for name in _SEGMENTS]


def _card(table: TableResult) -> str:
    verdict, segments = table.verdict.value, _segments(table)
    notes = [f"from {', '.join(table.sources)}; key {', '.join(table.key)}"]
    notes += [note for note in (table.method, table.reason) if note]
    if table.remedy:
        notes.append(f"would be settled so: {table.remedy}")
    if table.uncompared_columns:
        notes.append(f"not filled by the mapping, not compared: {', '.join(table.uncompared_columns)}")
    return (
        f'<article class="card"><div class="top"><h3>{escape(table.target)}</h3>'
        f'<span class="verdict {verdict}">{verdict}</span></div>'
        f"{page.bar(table.target, segments)}{page.numbers(segments)}"
        + "".join(f"<p>{escape(note)}</p>" for note in notes)
        + "</article>"
    )


def _causes(result: VerifyResult) -> str:
    groups = likely_causes(result)
    if not groups:
        return ""
    rows = [
        page.row(
            [
                escape(group.cause),
                f"{group.rows:,}{'+' if group.sampled else ''}",
                escape(", ".join(group.places)),
            ],
            right=(1,),
        )
        for group in groups
    ]
    note = (
        "<p class=dim>+: of the rows that were explained; more differ.</p>"
        if any(g.sampled for g in groups)
        else ""
    )
    return (
        f"<h2>Likely causes</h2>{page.table(('cause', 'rows', 'where'), rows, 'Likely causes', (1,))}{note}"
    )


def _differences(result: VerifyResult) -> str:
    found = [(table, sample) for table in result.tables for sample in table.samples]
    if not found:
        return ""
    items = [_item(table, sample, len(found) <= _OPEN_MAX) for table, sample in found]
    statuses = sorted({sample.status for _, sample in found})
    groups = [table.target for table in result.tables if table.samples]
    total = sum(sum(getattr(table.counts, name) for name in _SEGMENTS[1:]) for table in result.tables)
    note = f"<p class=dim>{len(found):,} samples of {total:,} keys that are not equal.</p>"
    return f"<h2>Differences</h2>{note}{page.browser(statuses, groups, items, 'Table')}"


def _item(table: TableResult, sample: Sample, opened: bool) -> str:
    key = ", ".join(f"{escape(name)}={page.value(value)}" for name, value in sample.key)
    olds = "".join(
        f'<p class="old">old row of <b>{escape(row.table)}</b>: '
        + ", ".join(f"{escape(name)}=<wbr>{page.value(value)}" for name, value in row.values)
        + "</p>"
        for row in sample.old_rows
    )
    title = f"<b>{escape(table.target)}</b> {key}"
    return page.item(sample.status, table.target, title, olds + _cells(sample), opened)


def _cells(sample: Sample) -> str:
    if sample.status == "duplicate":
        rows_seen = f"{sample.rows_mapped} rows in mapping(source), {sample.rows_target} in the target"
        seen = f"<p>{rows_seen}; one of each:</p>"
    else:
        seen = ""
    rows = []
    for cell in sample.cells:
        mapped = page.value(cell.mapped) if sample.rows_mapped else '<span class="null">no row</span>'
        target = page.value(cell.target) if sample.rows_target else '<span class="null">no row</span>'
        kind = "differs" if cell.differs or not (sample.rows_mapped and sample.rows_target) else ""
        rows.append(_cell_row(cell.column, mapped, target, cell.cause, kind))
    head = ("column", "mapped row", "target row", "likely cause")
    return seen + page.table(head, rows, "Cells of both rows")


def _cell_row(column: str, mapped: str, target: str, cause: str, kind: str) -> str:
    mark = '<span aria-label="differs">≠ </span>' if kind else ""
    cells = "".join(f"<td>{cell}</td>" for cell in (f"{mark}{escape(column)}", mapped, target, escape(cause)))
    return f'<tr class="{kind}">{cells}</tr>' if kind else f"<tr>{cells}</tr>"


def _columns(result: VerifyResult) -> str:
    rows = []
    for table in result.tables:
        for column in table.columns:
            causes = "<br>".join(f"{escape(cause)} ({number:,})" for cause, number in column.causes)
            examples = "<br>".join(f"{page.value(a)} → {page.value(b)}" for a, b in column.examples)
            name = escape(f"{table.target}.{column.column}")
            rows.append(
                page.row(
                    [name, f"{column.unequal_rows:,}", f"{column.explained_rows:,}", causes, examples],
                    right=(1, 2),
                )
            )
    if not rows:
        return ""
    cap = max(table.explained_rows_cap for table in result.tables)
    note = f"<p class=dim>Causes come from at most {cap:,} rows of a table; the counts are of all rows.</p>"
    head = ("column", "rows that differ", "explained", "likely causes", "mapped → target")
    return f"<h2>Columns that differ</h2>{page.table(head, rows, 'Columns that differ', (1, 2))}{note}"


def _rounds(result: VerifyResult) -> str:
    rows = [
        page.row(
            [
                f"{done.number}",
                f'<span class="v">{escape(done.low.state)} … {escape(done.high.state)}</span>',
                f'<span class="v">{escape(done.ledger_state)}</span>',
                escape(done.detail),
                f"{done.elapsed_s:.1f} s",
            ],
            right=(4,),
        )
        for done in result.rounds
    ]
    head = ("round", "source read in log", "target at", "how", "took")
    return f"<h2>Rounds</h2>{page.table(head, rows, 'Rounds', (4,))}" if rows else ""
