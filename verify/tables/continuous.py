"""Continuous verification beside a run: table after table, at a given rate, for as long as the run lasts.

A difference doesn't end it: the report is kept, the coverage file counts it, and the next table has its turn. An
error doesn't end it either: it is reported, and the table is verified again at its next turn. Nothing here writes to
either database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

from migrator.errors import MigratorError
from verify.tables.coverage import Coverage, TableCoverage, note_coverage, read_coverage, write_coverage
from verify.tables.covered import covered
from verify.tables.result import VerifyResult
from verify.verdict import Verdict

DEFAULT_RATE = 2_000.0
LEAST_REST_S = 5.0
"""The shortest rest between two tables, however small they are."""
ERROR_REST_S = 30.0

VerifyTable = Callable[[str, Path], VerifyResult]
"""Verifies one target table and writes its report into the folder."""
Wait = Callable[[float], bool]
"""Waits some seconds; returns true once the verifier is to end."""


class Rotation:
    """Verifies tables in turn.

    Args:
        tables: target tables.
        verify: verifies one table.
        directory: gets the coverage file, and a folder per table with its report.
        rate: rows a second, of both sides together, that are read on average at most.
        wait: between two tables.
        say: prints a line about each verification.
    """

    def __init__(
        self,
        tables: Sequence[str],
        verify: VerifyTable,
        directory: Path,
        rate: float,
        wait: Wait,
        say: Callable[[str], None] = lambda _: None,
    ):
        self._tables = tuple(tables)
        self._verify = verify
        self._directory = directory
        self._rate = rate
        self._wait = wait
        self._say = say

    def run(self) -> None:
        """Verifies tables in turn until the verifier is to end.

        Raises ``VerifyError`` for a coverage file that can't be read.
        """
        known = read_coverage(self._directory) or Coverage()
        write_coverage(replace(known, tables=tuple(map(known.of, self._tables))), self._directory)
        while True:
            for table in self._tables:
                if self._wait(self.once(table)):
                    return

    def once(self, table: str) -> float:
        """Verifies one table; returns the seconds to rest afterwards."""
        started, folder = time.monotonic(), self._directory / "continuous" / table
        for left in folder.glob("verify-*/"):  # snapshots of a verification that was killed
            rmtree(left, ignore_errors=True)
        try:
            result = self._verify(table, folder)
        except MigratorError as error:
            note_coverage((), f"{table} can't be verified: {error}", self._directory)
            self._say(f"{table}: can't be verified: {error}")
            return ERROR_REST_S
        found = self._covered(table, result, folder)
        note_coverage((found,), "", self._directory)
        self._say(f"{table}: {found.verdict}, {found.keys:,} keys, {found.differing:,} differ")
        rows = sum(compared.mapped_rows + compared.target_rows for compared in result.tables)
        return max(LEAST_REST_S, rows / self._rate - (time.monotonic() - started))

    def _covered(self, table: str, result: VerifyResult, folder: Path) -> TableCoverage:
        (own,) = result.tables
        kept = self._directory / "continuous" / f"{table}.different"
        if own.verdict is Verdict.DIFFERENT:
            rmtree(kept, ignore_errors=True)
            copytree(folder, kept)
        elif own.verdict is Verdict.EQUAL:
            rmtree(kept, ignore_errors=True)
        known = read_coverage(self._directory) or Coverage()
        return covered(own, result, folder, kept, known.of(table))
