"""Reading one table piece by piece: a view for each piece, held no longer than the piece is read.

Two ports, one module per engine (``postgres_chunks``, ``mysql_chunks``). Conditions and expressions are SQL that
``verify.chunk_keys`` and ``verify.digest`` made for that engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from migrator.model.table import TableSchema
from verify.chunk_keys import Dialect, Key, KeyColumn
from verify.snapshot import LedgerState, LogPlace, TargetColumnText


@dataclass(frozen=True, slots=True)
class Digest:
    """What a server says of a piece: its rows, and sums of their hashes.

    Attributes:
        rows: number of rows.
        hashed: rows that have a hash; fewer than ``rows`` where a server gave up on one.
        sums: of the hashes, modulo 2^64.
    """

    rows: int
    hashed: int
    sums: tuple[int, ...]

    def agrees(self, other: Digest) -> bool:
        """Whether both are of the same rows, unless hashes collide."""
        return self.rows == self.hashed and self == other


@dataclass(frozen=True, slots=True)
class Bracket:
    """The log's end before a view and after it: whatever the view contains is at or before ``high``."""

    low: LogPlace
    high: LogPlace


class SourceChunks(Protocol):
    """One table of the old database."""

    dialect: Dialect

    @property
    def schema(self) -> TableSchema:
        """The table, as it was when reading began."""
        ...

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """The key of the ``rows``-th row under a condition, in key order; None if there are fewer."""
        ...

    def digest(self, numbers: str, where: str) -> tuple[Bracket, Digest]:
        """The digest of a piece, in a view of its own."""
        ...

    def digest_of_next(
        self, numbers: str, key: KeyColumn, where: str, rows: int
    ) -> tuple[Bracket, Digest, Key | None]:
        """The digest of the next ``rows`` rows under a condition, in the order of a key of one column.

        And the key up to which all rows are in the digest; None where fewer are left, and all of them are in it. Only
        for kinds that are ``SUMMED_UP``.
        """
        ...

    def read(self, where: str, path: Path) -> tuple[Bracket, int]:
        """The rows of a piece into a Parquet file, in a view of its own; also their number."""
        ...


class TargetChunks(Protocol):
    """One table of the new database."""

    dialect: Dialect

    @property
    def columns(self) -> tuple[TargetColumnText, ...]:
        """Its columns."""
        ...

    def has_key(self, names: Sequence[str]) -> bool:
        """Whether a unique index of exactly these columns, none of them nullable, finds rows by key."""
        ...

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        ...

    def digest(self, numbers: str, where: str) -> tuple[LedgerState | None, Digest]:
        """Ledger and digest of a piece, from one transaction."""
        ...

    def read(self, where: str, path: Path) -> tuple[LedgerState | None, int]:
        """Ledger from the transaction that reads the rows of a piece into a Parquet file; also their number."""
        ...


class ChunkedSource(Protocol):
    """A source that can be read piece by piece."""

    def chunks(self, table: str) -> AbstractContextManager[SourceChunks]:
        """Sessions for one table. Raises ``VerifyError``, ``ConnectionFailed``."""
        ...


class ChunkedTarget(Protocol):
    """A target that can be read piece by piece."""

    def chunks(self, table: str) -> AbstractContextManager[TargetChunks]:
        """Sessions for one table. Raises ``VerifyError``, ``ConnectionFailed``."""
        ...
