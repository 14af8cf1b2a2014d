"""The result as text for a terminal, as JSON, as JUnit XML and as one HTML page.

JSON (``format`` 2): the fields of ``verify.tables.result`` as they are named there, with ``verdict`` as ``equal``,
``different`` or ``unknown``, ``exit_code`` beside it, tuples as lists and pairs as lists of two. Cell values
are text or null. ``likely_causes`` groups all differences (``verify.tables.findings.likely``), ``repair`` is
the command that mends them, or empty. A change that could break a reader raises the number.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote

from verify.report.display import on_terminal
from verify.report.files import json_document, write_private
from verify.report.junit import Case, junit
from verify.tables.findings.likely import likely_causes
from verify.tables.report_html import html_report
from verify.tables.result import FORMAT, Sample, TableResult, VerifyResult
from verify.verdict import Verdict

MEND = "migrator repair"
_STATUSES = ("equal", "different", "missing", "extra", "duplicate", "set_aside", "bad_rows")


def write_reports(result: VerifyResult, directory: Path, mend: str = MEND) -> None:
    """Writes ``verify.txt``, ``.json``, ``.xml`` and ``.html`` into ``directory``, for this user only.

    ``mend``: see ``repair_command``.
    """
    repair = repair_command(result, directory, mend)
    texts = {
        "verify.txt": text_report(result, repair),
        "verify.json": json_report(result, repair),
        "verify.xml": junit_report(result),
        "verify.html": html_report(result, repair),
    }
    write_private(directory, texts)


def repair_command(result: VerifyResult, directory: Path, mend: str = MEND) -> str:
    """Returns the command that mends the rows that differ; empty where none does.

    ``mend``: the command up to the report, with the project's file where it isn't the usual one.
    """
    if result.verdict is not Verdict.DIFFERENT:
        return ""
    return f"{mend} --from {quote(str(directory / 'verify.json'))}"


def json_report(result: VerifyResult, repair: str = "") -> str:
    """The result as JSON, see the module's text."""
    document = {
        "format": FORMAT,
        "exit_code": result.verdict.exit_code,
        **asdict(result),
        "likely_causes": [asdict(group) for group in likely_causes(result)],
        "repair": repair,
    }
    return json_document(document)


def junit_report(result: VerifyResult) -> str:
    """One test case for each target table."""
    cases = [
        Case(table.target, table.verdict, table.reason or _numbers(table), "\n".join(_details(table)))
        for table in result.tables
    ]
    return junit(f"verify {result.migration}", result.started_at, result.elapsed_s, cases)


def _numbers(table: TableResult) -> str:
    found = [(name.replace("_", " "), getattr(table.counts, name)) for name in _STATUSES]
    return ", ".join(f"{number:,} {name}" for name, number in found if number) or "nothing compared"


def text_report(result: VerifyResult, repair: str = "") -> str:
    """The result for a terminal: verdict first, then numbers, likely causes, then samples."""
    lines = [f"{result.verdict.value.upper()}  migration {result.migration}", ""]
    lines += [f"source  {result.source}", f"target  {result.target}"]
    for done in result.rounds:
        lines.append(
            f"round {done.number}  source read in log {done.low.state or 0} .. {done.high.state or 0},"
            f" target at {done.ledger_state or 'no position'}; {done.detail} ({done.elapsed_s:.1f} s)"
        )
    lines += ["", *_table_lines(result), "", *_cause_lines(result)]
    for table in result.tables:
        lines += _details(table)
    if lines[-1]:
        lines.append("")
    if result.remedy:
        lines += [f"remedy: {result.remedy}", *([f"repair: {repair}"] if repair else []), ""]
    lines += ["What this check cannot detect:", *[f"  - {line}" for line in result.cannot_detect], ""]
    lines.append(f"{result.started_at}, {result.elapsed_s:.1f} s")
    return "\n".join(lines) + "\n"


def _cause_lines(result: VerifyResult) -> list[str]:
    groups = likely_causes(result)
    if not groups:
        return []
    width = max(len(f"{group.rows:,}") for group in groups) + 1
    shown = [
        f"  {f'{group.rows:,}' + ('+' if group.sampled else ''):>{width}}  {group.cause}: {', '.join(group.places)}"
        for group in groups
    ]
    return ["likely causes (rows)", *shown, ""]


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
    if table.remedy:
        lines.append(f"{table.target}: would be settled so: {table.remedy}")
    if table.method:
        lines.append(f"{table.target}: {table.method}")
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
        lines += [f"  {on_terminal(a)} -> {on_terminal(b)}" for a, b in column.examples]
    if table.samples:
        lines.append(
            f"{table.target}: {len(table.samples)} samples (mapped row -> target row, > marks what differs)"
        )
        for sample in table.samples:
            lines += _sample(sample)
    return [*lines, ""] if table.columns or table.samples else lines


def _sample(sample: Sample) -> list[str]:
    key = ", ".join(f"{name}={on_terminal(value)}" for name, value in sample.key)
    lines = [f"  {sample.status}  {key}"]
    if sample.status == "duplicate":
        lines.append(f"    {sample.rows_mapped} rows in mapping(source), {sample.rows_target} in the target")
    for old in sample.old_rows:
        values = ", ".join(f"{name}={on_terminal(value)}" for name, value in old.values)
        lines.append(f"    old row of {old.table}: {values}")
    for cell in sample.cells:
        mark = ">" if cell.differs else " "
        if not sample.rows_mapped:
            text = on_terminal(cell.target)
        elif not sample.rows_target or not cell.differs:
            text = on_terminal(cell.mapped)
        else:
            text = f"{on_terminal(cell.mapped)} -> {on_terminal(cell.target)}" + (
                f"   ({cell.cause})" if cell.cause else ""
            )
        lines.append(f"  {mark} {cell.column}: {text}")
    return lines
