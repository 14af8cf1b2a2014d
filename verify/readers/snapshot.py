"""The result of one read of a side: tables as Parquet files, and the positions they stand at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.model.progress import Checkpoint
from migrator.model.table import TableSchema
from verify.readers.as_printed import AsPrinted


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place in the source log as the judge reads it.

    Attributes:
        order: comparable with the ledger's ``position_order``.
        state: the server's own words (LSN, or GTID state).
    """

    order: int
    state: str


Viewed = Callable[[LogPlace], None]
"""Called with the log's end once a read view stands."""


def unheard(_: LogPlace) -> None:
    """Ignores a place, for callers who only want the rows."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One source table of a snapshot. ``path`` is a Parquet file in the table's logical types."""

    schema: TableSchema
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """All tables as of one read view, bracketed by places in the log.

    Attributes:
        low: the log's end before the read view was taken (L0).
        high: the log's end after it (L1): every transaction that the view contains is at or before ``high``.
        tables: by table name.
    """

    low: LogPlace
    high: LogPlace
    tables: Mapping[str, SourceTable]


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The target's ledger row. ``order`` 0 and ``checkpoint`` None mean that nothing was applied yet."""

    epoch: int
    segment: int
    order: int
    token: str
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class TargetColumnText:
    """One target column as the judge reads it.

    Attributes:
        name: as the target spells it.
        native: the declared type, e.g. ``numeric(12,2)``.
        base: the type's own name without modifiers, domains resolved, e.g. ``numeric``.
        generated: computed by the target, so no mapping can fill it.
        collation: of a text on MySQL or MariaDB; else empty.
        printed: how to ask the target what it prints of a text; None where each text is a value of its own.
    """

    name: str
    native: str
    base: str
    generated: bool
    collation: str = ""
    printed: AsPrinted | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class TargetRowsText:
    """One target table of a snapshot. ``path`` is a Parquet file of strings, one per column, NULL kept."""

    name: str
    columns: tuple[TargetColumnText, ...]
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """Target rows and ledger from one transaction. ``ledger`` is None when the migration has no ledger row."""

    ledger: LedgerState | None
    tables: Mapping[str, TargetRowsText]
