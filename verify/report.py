"""The result as text for a terminal, as JSON and as one HTML page.

JSON (``format`` 2): the fields of ``verify.result`` as they are named there, with ``verdict`` as ``equal``,
``different`` or ``unknown``, ``exit_code`` beside it, tuples as lists and pairs as lists of two. Cell values are text
or null. A change that could break a reader raises the number.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from verify.report_html import html_report
from verify.result import FORMAT, Sample, TableResult, Verdict, VerifyResult

_WIDTH_MAX = 60
_STATUSES = ("equal", "different", "missing", "extra", "duplicate", "set_aside")


def write_reports(result: VerifyResult, directory: Path) -> None:
    """Writes ``verify.txt``, ``verify.json`` and ``verify.html`` into ``directory``, for this user only."""
    reports = {"txt": text_report(result), "json": json_report(result), "html": html_report(result)}
    for kind, text in reports.items():
        path = directory / f"verify.{kind}"
        path.touch(mode=0o600)
        path.chmod(0o600)  # one of an earlier run
        path.write_text(text, encoding="utf-8")


def json_report(result: VerifyResult) -> str:
    """The result as JSON, see the module's text."""
    document: dict[str, Any] = {"format": FORMAT, "exit_code": result.verdict.exit_code, **asdict(result)}
    return json.dumps(document, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, Verdict):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def text_report(result: VerifyResult) -> str:
    """The result for a terminal: verdict first, then numbers, then samples."""
    lines = [f"{result.verdict.value.upper()}  migration {result.migration}", ""]
    lines += [f"source  {result.source}", f"target  {result.target}"]
    for done in result.rounds:
        lines.append(
            f"round {done.number}  source read in log {done.low.state or 0} .. {done.high.state or 0},"
            f" target at {done.ledger_state or 'no position'}; {done.detail} ({done.elapsed_s:.1f} s)"
        )
    lines += ["", *_table_lines(result), ""]
    for table in result.tables:
        lines += _details(table)
    if result.remedy:
        lines += [f"remedy: {result.remedy}", ""]
    lines += ["What this check cannot detect:", *[f"  - {line}" for line in result.cannot_detect], ""]
    lines.append(f"{result.started_at}, {result.elapsed_s:.1f} s")
    return "\n".join(lines) + "\n"


def _table_lines(result: VerifyResult) -> list[str]:
    head = ["table", "verdict", "compared", *[name.replace("_", " ") for name in _STATUSES]]
    rows = [
        [table.target, table.verdict.value, f"{table.counts.compared:,}"]
        + [f"{getattr(table.counts, name):,}" for name in _STATUSES]
        for table in result.tables
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        words = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(words).rstrip()

    return [line(head), *[line(row) for row in rows]]


def _details(table: TableResult) -> list[str]:
    lines: list[str] = []
    if table.reason:
        lines.append(f"{table.target}: {table.reason}")
    if table.uncompared_columns:
        lines.append(
            f"{table.target}: not filled by the mapping, not compared: {', '.join(table.uncompared_columns)}"
        )
    for column in table.columns:
        causes = ", ".join(f"{cause} ({rows:,})" for cause, rows in column.causes) or "cause not sampled"
        lines.append(f"{table.target}.{column.column}: {column.unequal_rows:,} rows differ: {causes}")
        if column.explained_rows < column.unequal_rows:
            lines.append(
                f"  causes from {column.explained_rows:,} of them (sample of {table.explained_rows_cap:,} rows)"
            )
        lines += [f"  {_value(a)} -> {_value(b)}" for a, b in column.examples]
    if table.samples:
        lines.append(
            f"{table.target}: {len(table.samples)} samples (mapped row -> target row, > marks what differs)"
        )
        for sample in table.samples:
            lines += _sample(sample)
    return [*lines, ""] if lines else []


def _sample(sample: Sample) -> list[str]:
    key = ", ".join(f"{name}={_value(value)}" for name, value in sample.key)
    lines = [f"  {sample.status}  {key}"]
    if sample.status == "duplicate":
        lines.append(f"    {sample.rows_mapped} rows in mapping(source), {sample.rows_target} in the target")
    for old in sample.old_rows:
        values = ", ".join(f"{name}={_value(value)}" for name, value in old.values)
        lines.append(f"    old row of {old.table}: {values}")
    for cell in sample.cells:
        mark = ">" if cell.differs else " "
        if not sample.rows_mapped:
            text = _value(cell.target)
        elif not sample.rows_target or not cell.differs:
            text = _value(cell.mapped)
        else:
            text = f"{_value(cell.mapped)} -> {_value(cell.target)}" + (
                f"   ({cell.cause})" if cell.cause else ""
            )
        lines.append(f"  {mark} {cell.column}: {text}")
    return lines


def _value(value: str | None) -> str:
    if value is None:
        return "NULL"
    text = value if len(value) <= _WIDTH_MAX else value[: _WIDTH_MAX - 1] + "…"
    return repr(text) if text != text.strip() or not text.isprintable() or not text else text
