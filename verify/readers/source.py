"""The old database as the judge reads it: one port, one module per engine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from verify.readers.pending import Pending
from verify.readers.ports import SourceChunks, SourceTables
from verify.readers.snapshot import LedgerState, LogPlace, SourceSnapshot, Viewed, unheard


class SourceReader(Protocol):
    """Whole tables of one read view, and the log's end around it."""

    def snapshot(self, tables: Sequence[str], directory: Path, viewed: Viewed = unheard) -> SourceSnapshot:
        """Reads whole tables of one read view into Parquet files below ``directory``.

        ``viewed`` hears the log's end (L1) as soon as the view stands, before any row is read: whoever waits
        for the target needs not wait for the rows. Raises ``VerifyError``, ``ConnectionFailed``.
        """
        ...

    def chunks(self, table: str) -> AbstractContextManager[SourceChunks]:
        """One table piece by piece."""
        ...

    def tables(self, names: Sequence[str]) -> AbstractContextManager[SourceTables]:
        """Some tables, of which rows that belong together are read in one view."""
        ...

    def position(self) -> LogPlace:
        """The log's end now."""
        ...

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether the log holds changes of ``tables`` that the ledger lacks, up to ``upto``."""
        ...
