"""The last verification of each table, and its result: a small file that every verification of whole tables writes.
``status`` and cut-overs read it.

JSON (``format`` 2; 1 has neither ``segment`` nor ``judged_by``): the fields of ``Coverage``. Replaced as a whole, so
that a reader never sees half of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from migrator.errors import VerifyError

COVERAGE_FORMAT = 2
COVERAGE_FILE = "coverage.json"


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """The last verification of one target table.

    Attributes:
        table: its name.
        verdict: ``equal``, ``different``, ``unknown``, or empty before the first one.
        at_us: when it ended, microseconds since 1970.
        keys: keys that were compared and settled.
        open_keys: keys that differed and didn't settle, because they change all the time.
        columns: columns compared.
        all_columns: columns of the table that could be compared.
        differing: keys that differ.
        report: folder of the report that lists them; kept until the table is found equal.
        reason: why nothing is known, or empty.
        segment: the segment at which the target's ledger stood when it began: it may have missed later changes.
        judged_by: digest of the mapping (``VerifyResult.judged_by``).
    """

    table: str
    verdict: str = ""
    at_us: int = 0
    keys: int = 0
    open_keys: int = 0
    columns: int = 0
    all_columns: int = 0
    differing: int = 0
    report: str = ""
    reason: str = ""
    segment: int = 0
    judged_by: str = ""

    def key_share(self) -> float:
        """Share of the table's keys that were verified."""
        return (
            self.keys / (self.keys + self.open_keys)
            if self.keys + self.open_keys
            else float(bool(self.at_us))
        )

    def column_share(self) -> float:
        """Share of its columns."""
        return self.columns / self.all_columns if self.all_columns else 0.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of all tables. ``problem`` says why the verifier doesn't work, or is empty; ``at_us`` is when it
    wrote the file."""

    tables: tuple[TableCoverage, ...] = ()
    problem: str = ""
    at_us: int = 0

    def of(self, table: str) -> TableCoverage:
        """Returns a table's coverage; an empty one before its first verification."""
        return next((covered for covered in self.tables if covered.table == table), TableCoverage(table))

    def having(self, table: TableCoverage) -> Coverage:
        """Returns a copy with another state of one table."""
        rest = tuple(covered for covered in self.tables if covered.table != table.table)
        return replace(self, tables=tuple(sorted((*rest, table), key=lambda covered: covered.table)))


def note_coverage(tables: Sequence[TableCoverage], problem: str, directory: Path) -> Coverage:
    """Notes verifications of some tables beside what others have noted meanwhile; returns all of it.

    A file that can't be read is written anew.
    """
    with _alone(directory):
        known = _known(directory)
        for table in tables:
            known = known.having(table)
        known = replace(known, problem=problem, at_us=int(time.time() * 1e6))
        write_coverage(known, directory)
    return known


def forget_coverage(table: str, directory: Path) -> None:
    """Forgets the verification of a table that is started anew: its rows are others from now on."""
    if (directory / COVERAGE_FILE).exists():
        with _alone(directory):
            known = _known(directory)
            rest = tuple(covered for covered in known.tables if covered.table != table)
            write_coverage(replace(known, tables=rest), directory)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps other writers away: of the verifier beside a run, and one by hand, neither's word is lost."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _known(directory: Path) -> Coverage:
    try:
        return read_coverage(directory) or Coverage()
    except VerifyError:
        return Coverage()


def write_coverage(coverage: Coverage, directory: Path) -> None:
    """Writes the coverage file, in place of an earlier one."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = directory / f".{COVERAGE_FILE}.{os.getpid()}"
    new.touch(mode=0o600)
    new.write_text(json.dumps({"format": COVERAGE_FORMAT, **asdict(coverage)}, indent=2) + "\n", "utf-8")
    new.replace(directory / COVERAGE_FILE)


def read_coverage(directory: Path) -> Coverage | None:
    """Reads the coverage file; None where no verifier ever ran. Raises ``VerifyError`` for a file that can't be
    read."""
    path = directory / COVERAGE_FILE
    try:
        document = json.loads(path.read_text("utf-8"))
        if document["format"] > COVERAGE_FORMAT:
            raise VerifyError(
                "what was verified is told in a newer format",
                where=str(path),
                cause=f"its format is {document['format']}, this version knows formats up to {COVERAGE_FORMAT}",
                remedy="use the version of the migrator that wrote it, or a newer one",
            )
        tables = tuple(TableCoverage(**entry) for entry in document["tables"])
        return Coverage(tables, document["problem"], document["at_us"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise VerifyError(
            "what was verified can't be read",
            where=str(path),
            cause=str(error),
            remedy="remove the file: the next verification writes it anew",
        ) from error
