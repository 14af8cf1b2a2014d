"""The coverage of a table by one verification, for the file that remembers it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from verify.tables.coverage import TableCoverage
from verify.tables.findings.differing import read_differing
from verify.tables.result import TableResult, VerifyResult
from verify.verdict import Verdict


def covered(
    own: TableResult, result: VerifyResult, folder: Path, report: Path, before: TableCoverage
) -> TableCoverage:
    """Returns a table's coverage by a verification of all its keys.

    Args:
        own: the table's part of the result.
        result: all of it.
        folder: its reports.
        report: folder with the report on a difference, which outlives later verifications.
        before: the table's coverage so far; it stays where this verification found out nothing.
    """
    counts = own.counts
    if own.verdict is Verdict.UNKNOWN and not counts.compared:
        return replace(before, table=own.target, reason=own.reason)
    tables = read_differing(folder / "verify.json").tables
    compared = next((len(one.columns) for one in tables if one.table == own.target), 0)
    return TableCoverage(
        table=own.target,
        verdict=own.verdict.value,
        at_us=int(time.time() * 1e6),
        keys=counts.compared,
        open_keys=counts.set_aside,
        columns=compared,
        all_columns=compared + len(own.uncompared_columns),
        differing=counts.different + counts.missing + counts.extra + counts.duplicate + counts.bad_rows,
        report=str(report) if report.is_dir() else "",
        reason=own.reason,
        segment=result.segment,
        judged_by=result.judged_by,
    )
