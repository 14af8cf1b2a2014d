"""The result of a dual read as text for a terminal, as JSON, as JUnit XML and as one HTML page.

JSON (``format`` 1): the fields of ``verify.dual_read.result`` as they are named there, ``exit_code`` beside them,
enums as their words, tuples as lists and pairs as lists of two. A change that could break a reader raises the
number.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from verify.dual_read.report_html import html_report
from verify.dual_read.result import FORMAT, Comparison, DualReadResult, PairResult
from verify.report.files import json_document, write_private
from verify.report.junit import Case, junit

_COUNTS = ("compared", "match", "lag", "semantic", "accepted", "bug", "unknown", "dropped")
_WIDTH_MAX = 60


def write_reports(result: DualReadResult, directory: Path) -> None:
    """Writes ``dual-read.txt``, ``.json``, ``.html`` and ``.xml`` into ``directory``, for this user only."""
    texts = {
        "dual-read.txt": text_report(result),
        "dual-read.json": json_report(result),
        "dual-read.html": html_report(result),
        "dual-read.xml": junit_report(result),
    }
    write_private(directory, texts)


def json_report(result: DualReadResult) -> str:
    """The result as JSON, see the module's text."""
    return json_document({"format": FORMAT, "exit_code": result.verdict.exit_code, **asdict(result)})


def junit_report(result: DualReadResult) -> str:
    """One test case for each pair of queries."""
    cases = [
        Case(pair.name, pair.verdict, pair.reason or _causes(pair), "\n".join(_details(pair)))
        for pair in result.pairs
    ]
    return junit(f"dual read of {result.migration}", result.started_at, result.elapsed_s, cases)


def text_report(result: DualReadResult) -> str:
    """Verdict first, then numbers, latency, then samples."""
    lines = [f"{result.verdict.value.upper()}  dual read of {result.migration}", ""]
    lines += [f"source  {result.source}", f"target  {result.target}", ""]
    lines += _table(("pair", "verdict", *_COUNTS), [_numbers(pair) for pair in result.pairs])
    lines += ["", "latency in ms (old / new)"]
    heads = ("pair", "reads", "p50", "p95", "p99", "")
    lines += _table(heads, [_latency(pair) for pair in result.pairs])
    lines.append("")
    for pair in result.pairs:
        lines += _details(pair)
    lines += [f"note: {note}" for note in result.notes]
    lines += [f"remedy: {result.remedy}", ""] if result.remedy else []
    lines += ["What this check cannot detect:", *[f"  - {line}" for line in result.cannot_detect], ""]
    lines.append(f"{result.started_at}, {result.elapsed_s:.1f} s, seed {result.seed}")
    return "\n".join(lines) + "\n"


def _numbers(pair: PairResult) -> tuple[str, ...]:
    return (pair.name, pair.verdict.value, *[f"{getattr(pair, name):,}" for name in _COUNTS])


def _latency(pair: PairResult) -> tuple[str, ...]:
    old, new = pair.old_latency, pair.new_latency
    pairs = ((old.p50_ms, new.p50_ms), (old.p95_ms, new.p95_ms), (old.p99_ms, new.p99_ms))
    shown = [f"{a:.1f} / {b:.1f}" for a, b in pairs]
    return (pair.name, f"{old.reads:,} / {new.reads:,}", *shown, pair.slower and f"SLOWER: {pair.slower}")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]


def _causes(pair: PairResult) -> str:
    return ", ".join(f"{cause} ({number:,})" for cause, number in pair.causes)


def _details(pair: PairResult) -> list[str]:
    lines = [f"{pair.name}: {pair.reason}"] if pair.reason else []
    lines += [f"{pair.name}: {cause} ({number:,})" for cause, number in pair.causes]
    for sample in pair.samples:
        lines += _sample(sample)
    return [*lines, ""] if lines else []


def _sample(sample: Comparison) -> list[str]:
    parameters = ", ".join(f"{name}={value}" for name, value in sample.parameters)
    lines = [f"  {sample.outcome.value}  {parameters}".rstrip(), f"    {sample.reason}"]
    lines.append(
        f"    old read in log {sample.source_low or '?'} .. {sample.source_high or '?'},"
        f" new read at {sample.target_at or 'no position'}; {sample.old_ms:.1f} ms / {sample.new_ms:.1f} ms"
    )
    lines += [
        f"    row {cell.row + 1} {cell.column}: {_value(cell.old)} -> {_value(cell.new)}   ({cell.cause})"
        for cell in sample.cells
    ]
    return lines


def _value(value: str | None) -> str:
    if value is None:
        return "NULL"
    return repr(value if len(value) <= _WIDTH_MAX else value[: _WIDTH_MAX - 1] + "…")
