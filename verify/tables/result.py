"""The findings of a verification, as frozen values. ``FORMAT`` numbers the JSON form (``verify.tables.report``)."""

from __future__ import annotations

from dataclasses import dataclass

from verify.tables.compare.compare import Counts
from verify.tables.rounds.live import Round
from verify.verdict import Verdict

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a sample, as people read it. ``cause`` is empty when the two sides are equal."""

    column: str
    mapped: str | None
    target: str | None
    differs: bool
    cause: str


@dataclass(frozen=True, slots=True)
class OldRow:
    """A source row that the mapping makes the sample's row of."""

    table: str
    values: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One key that isn't equal.

    Attributes:
        status: ``different``, ``missing``, ``extra``, ``duplicate`` or ``set aside``.
        key: names and values.
        cells: all columns; the side that has no row shows NULLs.
        old_rows: the source rows behind it, where they could be found with certainty.
        rows_mapped: rows of that key in mapping(source).
        rows_target: rows of that key in the target.
    """

    status: str
    key: tuple[tuple[str, str | None], ...]
    cells: tuple[Cell, ...]
    old_rows: tuple[OldRow, ...]
    rows_mapped: int
    rows_target: int


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """The difference of one column.

    Attributes:
        column: name.
        unequal_rows: over all rows that differ, counted exactly.
        explained_rows: unequal rows among those given to datacompy.
        causes: likely causes with the number of explained rows, most frequent first.
        examples: pairs of mapped and target value.
    """

    column: str
    unequal_rows: int
    explained_rows: int
    causes: tuple[tuple[str, int], ...]
    examples: tuple[tuple[str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result of one target table. ``reason`` says why a verdict is unknown, or is empty; ``method`` says how the
    table was verified; ``remedy`` says what would settle an unknown verdict, or is empty."""

    target: str
    sources: tuple[str, ...]
    key: tuple[str, ...]
    verdict: Verdict
    reason: str
    counts: Counts
    mapped_rows: int
    target_rows: int
    uncompared_columns: tuple[str, ...]
    columns: tuple[ColumnDifference, ...]
    explained_rows_cap: int
    samples: tuple[Sample, ...]
    method: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The whole answer.

    Attributes:
        migration: its name.
        verdict: over all tables.
        started_at: wall clock, ISO 8601 in UTC.
        elapsed_s: duration.
        source: server and database, without secrets.
        target: the same.
        tables: per target table.
        rounds: what each round saw.
        remedy: the next step for the user, or empty.
        cannot_detect: differences that this check can't notice.
        differing_file: name of the file beside the report that lists the keys that differ
            (``verify.tables.findings.differing``).
        differing_listed: the number of keys that it lists.
        differing_left_out: the number of further keys that differ.
        within_s: the time it had; None for no limit.
        acts: the latest acts on the migration, oldest first, a line each (``migrator history``).
        segment: the segment at which the target's ledger stood when it began; 0: nothing was applied.
        judged_by: digest of the mapping file, and of the names of those next functions that are in force.
    """

    migration: str
    verdict: Verdict
    started_at: str
    elapsed_s: float
    source: str
    target: str
    tables: tuple[TableResult, ...]
    rounds: tuple[Round, ...]
    remedy: str
    cannot_detect: tuple[str, ...]
    differing_file: str = ""
    differing_listed: int = 0
    differing_left_out: int = 0
    within_s: float | None = None
    acts: tuple[str, ...] = ()
    segment: int = 0
    judged_by: str = ""


CANNOT_DETECT = (
    "An update lost after the source was read: each key is judged as of that read. Verify again.",
    "Where a table is read in chunks of many source tables, a row that is wrong only in what was written while they"
    " were read: it is judged by what was read of each. Verify again.",
    "A fault in the mapping function itself: both sides are judged by what it says. Its unit tests are for that.",
    "Target columns that the mapping does not fill, and objects that are not rows (indexes, constraints, sequences).",
    "A difference that the listed equivalences call none (see verify/tables/compare/normalise.py), such as 1.50"
    " and 1.5.",
    "Two different rows whose two 64-bit hashes both collide; where servers hash chunks (see each table's method),"
    " chunks of as many rows whose 64-bit sums of hashes collide.",
    "A wrong value that is overwritten before it is read, however wrong it was in between.",
)


def table_verdict(counts: Counts, unknown: str) -> Verdict:
    """Returns *different* if a key was settled as not equal or has its row set aside, else *unknown* if a key is
    open or the table was not compared, else *equal*."""
    if counts.different or counts.missing or counts.extra or counts.duplicate or counts.bad_rows:
        return Verdict.DIFFERENT
    if unknown or counts.set_aside:
        return Verdict.UNKNOWN
    return Verdict.EQUAL
