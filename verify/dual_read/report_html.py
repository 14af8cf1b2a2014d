"""The result of a dual read as one self-contained HTML page."""

from __future__ import annotations

from html import escape

from verify.dual_read.result import Comparison, DualReadResult, PairResult
from verify.report import page

_SEGMENTS = ("match", "lag", "accepted", "semantic", "bug", "unknown", "dropped")


def html_report(result: DualReadResult) -> str:
    """The whole page."""
    verdict = result.verdict.value
    took = f"{result.started_at}, {result.elapsed_s:.1f} s, seed {result.seed}"
    facts = [("old side", result.source), ("new side", result.target), ("asked", took)]
    facts += [("note", note) for note in result.notes]
    samples = [(pair.name, sample) for pair in result.pairs for sample in pair.samples]
    body = [
        page.header(verdict, f"dual read of {result.migration}", facts),
        page.panel("What to do", f"<p>{escape(result.remedy)}</p>") if result.remedy else "",
        "<h2>Pairs of queries</h2>",
        f'<div class="cards">{"".join(map(_card, result.pairs))}</div>',
        _latencies(result),
        _causes(result),
        _samples(result, samples),
        "<h2>What this check cannot detect</h2>",
        page.bullets(result.cannot_detect),
    ]
    return page.page(f"{verdict}: dual read of {result.migration}", body)


def _card(pair: PairResult) -> str:
    segments = [(name, getattr(pair, name)) for name in _SEGMENTS]
    verdict = pair.verdict.value
    queries = ""
    if pair.old or pair.new:
        queries = (
            "<details><summary>Queries</summary>"
            f"<p>old</p>{page.command(pair.old)}<p>new</p>{page.command(pair.new)}</details>"
        )
    return (
        f'<article class="card"><div class="top"><h3>{escape(pair.name)}</h3>'
        f'<span class="verdict {verdict}">{verdict}</span></div>'
        f"{page.bar(pair.name, segments)}{page.numbers(segments)}"
        + (f"<p>{escape(pair.reason)}</p>" if pair.reason else "")
        + (f"<p><b>Slower:</b> {escape(pair.slower)}</p>" if pair.slower else "")
        + f"{queries}</article>"
    )


def _latencies(result: DualReadResult) -> str:
    rows = []
    for pair in result.pairs:
        old, new = pair.old_latency, pair.new_latency
        cells = [escape(pair.name), f"{old.reads:,} / {new.reads:,}"]
        cells += [
            f"{a:.1f} / {b:.1f}"
            for a, b in ((old.p50_ms, new.p50_ms), (old.p95_ms, new.p95_ms), (old.p99_ms, new.p99_ms))
        ]
        rows.append(
            page.row([*cells, "slower" if pair.slower else ""], "named" if pair.slower else "", (1, 2, 3, 4))
        )
    head = ("pair", "reads, old / new", "p50 ms", "p95 ms", "p99 ms", "")
    return (
        f"<h2>Latency, old / new</h2>{page.table(head, rows, 'Latency of both sides', (1, 2, 3, 4))}"
        if rows
        else ""
    )


def _causes(result: DualReadResult) -> str:
    rows = [
        page.row([escape(cause), f"{number:,}", escape(pair.name)], right=(1,))
        for pair in result.pairs
        for cause, number in pair.causes
    ]
    head = ("cause", "comparisons", "pair")
    return f"<h2>Likely causes</h2>{page.table(head, rows, 'Likely causes', (1,))}" if rows else ""


def _samples(result: DualReadResult, samples: list[tuple[str, Comparison]]) -> str:
    if not samples:
        return ""
    statuses = sorted({sample.outcome.value for _, sample in samples})
    groups = [pair.name for pair in result.pairs if pair.samples]
    items = [_item(name, sample, len(samples) <= 10) for name, sample in samples]
    return f"<h2>Comparisons that were no match</h2>{page.browser(statuses, groups, items, 'Pair')}"


def _item(name: str, sample: Comparison, opened: bool) -> str:
    parameters = ", ".join(f"{escape(n)}={page.value(v)}" for n, v in sample.parameters)
    cells = [
        page.row(
            [
                f"row {cell.row + 1}",
                escape(cell.column),
                page.value(cell.old),
                page.value(cell.new),
                escape(cell.cause),
            ],
            "named" if cell.name else "differs",
        )
        for cell in sample.cells
    ]
    head = ("", "column", "old answer", "new answer", "cause")
    content = (
        f"<p>{escape(sample.reason)}</p>"
        + (page.table(head, cells, "Cells that differ") if cells else "")
        + f'<p class="dim">old read in log <span class="v">{escape(sample.source_low or "?")} …'
        f" {escape(sample.source_high or '?')}</span>, new read at"
        f' <span class="v">{escape(sample.target_at or "no position")}</span>;'
        f" {sample.old_ms:.1f} ms / {sample.new_ms:.1f} ms</p>"
    )
    return page.item(sample.outcome.value, name, f"{escape(name)} {parameters}", content, opened)
