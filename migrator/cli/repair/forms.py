"""A repair's before and after as text for a terminal, as JSON, as JUnit XML and as one HTML page.

A dry run has the same forms under names of its own: it must not replace what a repair has left.

JSON (``format`` 1): the fields of ``repair_report.Outcome`` as they are named there, tuples as lists; beside them
``verdict`` as ``repaired``, ``different`` or ``unknown`` (of a dry run ``equal``, ``different`` or ``unknown``),
``exit_code``, ``migration``, ``command`` (what does what is planned, or what repairs once more), ``started_at``
(ISO 8601 in UTC) and ``elapsed_s``. A change that could break a reader raises the number.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from migrator.cli.repair.html import html_report
from migrator.cli.repair.report import Outcome, counted, key_words, step_line
from verify.report.files import json_document, write_private
from verify.report.junit import Case, junit
from verify.verdict import Verdict

REPAIR_FORMAT = 1
_JUNIT = {
    "repaired": Verdict.EQUAL,
    "equal": Verdict.EQUAL,
    "different": Verdict.DIFFERENT,
    "unknown": Verdict.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class RepairReport:
    """An outcome and when it was found.

    Attributes:
        migration: its name.
        started_at: ISO 8601 in UTC.
        elapsed_s: with verification.
        outcome: before and after.
        command: what does what is planned, or what repairs once more; as it is typed.
    """

    migration: str
    started_at: str
    elapsed_s: float
    outcome: Outcome
    command: str


def write_reports(report: RepairReport, directory: Path) -> None:
    """Writes ``repair.txt``, ``.json``, ``.xml`` and ``.html`` into ``directory``, for this user only.

    Of a dry run ``repair-plan.txt`` and so on.
    """
    done = report.outcome
    name = file_name(done)
    texts = {
        f"{name}.txt": "\n".join([f"{done.verdict().upper()}  {report.migration}", "", *lines(done)]) + "\n",
        f"{name}.json": json_report(report),
        f"{name}.xml": junit_report(report),
        f"{name}.html": html_report(
            report.migration, report.started_at, report.elapsed_s, done, report.command
        ),
    }
    write_private(directory, texts)


def file_name(done: Outcome) -> str:
    """Returns the name of the report's files, before the dot."""
    return "repair-plan" if done.dry_run else "repair"


def json_report(report: RepairReport) -> str:
    """The report as JSON, see the module's text."""
    done = report.outcome
    document = {
        "format": REPAIR_FORMAT,
        "verdict": done.verdict(),
        "exit_code": done.exit_code(),
        "migration": report.migration,
        "started_at": report.started_at,
        "elapsed_s": report.elapsed_s,
        "command": report.command,
        **asdict(done),
    }
    return json_document(document)


def junit_report(report: RepairReport) -> str:
    """One test case for each table that had something to repair."""
    done = report.outcome
    text = "\n".join(lines(done))
    cases = [
        Case(table, _JUNIT[done.table_verdict(table)], _summary(done, table), text) for table in done.before
    ]
    subject = "repair (dry run)" if done.dry_run else "repair"
    return junit(f"{subject} {report.migration}", report.started_at, report.elapsed_s, cases)


def lines(done: Outcome) -> list[str]:
    """Writes the report for a terminal."""
    if done.dry_run:
        return [
            *(_summary(done, table) for table in done.before),
            *(f"{status} in {table}: {key_words(key)}" for table, status, key in done.left),
            *(step_line(step) for step in done.planned),
            *(f"{table}: could not be judged wholly; what is listed differs for sure" for table in done.open),
            "dry run: nothing was written to any database",
        ]
    found = [f"request {name}  {state}  {reason}".rstrip() for name, state, reason in done.requests]
    found += [_summary(done, table) for table in done.before]
    found += [f"still {status} in {table}: {key_words(key)}" for table, status, key in done.left]
    found += [f"{table}: not every key settled: verify again when less is written" for table in done.open]
    found += [
        f"{table}: {number:,} other keys differ, which weren't to be repaired"
        for table, number in done.others.items()
    ]
    return found


def _summary(done: Outcome, table: str) -> str:
    if done.dry_run:
        return f"{table}: {counted(done.before[table])}"
    return f"{table}: before {counted(done.before[table])}; after {counted(done.after.get(table, {}))}"
