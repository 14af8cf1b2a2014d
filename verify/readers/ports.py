"""Reading one table piece by piece: a view for each piece, held no longer than the piece is read.

Ports, with a module per engine: ``postgres_chunks`` and ``mysql_chunks`` for one table, ``postgres_tables`` and
``mysql_tables`` for several. Conditions and expressions are SQL that ``verify.readers.chunk_keys``,
``verify.tables.sweeps.grain_plan`` and
``verify.tables.hashed_by_servers.digest`` made for that engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from verify.readers.chunk_keys import Dialect, Key, KeyColumn
from verify.readers.snapshot import LedgerState, LogPlace, TargetColumnText


@dataclass(frozen=True, slots=True)
class Digest:
    """A server's summary of a piece of a table: its number of rows, and sums of their hashes.

    Attributes:
        rows: number of rows.
        hashed: rows that have a hash; fewer than ``rows`` where a server gave up on one.
        sums: of the hashes, modulo 2^64.
    """

    rows: int
    hashed: int
    sums: tuple[int, ...]

    def agrees(self, other: Digest) -> bool:
        """Returns whether both digests are of the same rows, unless hashes collide."""
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

    def ends(self, key: KeyColumn) -> tuple[str, str] | None:
        """The least and the greatest value of a key of one column, a whole number; None in an empty table."""
        ...

    def digest(self, numbers: str, where: str) -> tuple[Bracket, Digest]:
        """The digest of a piece, in a view of its own."""
        ...

    def read(self, where: str, path: Path) -> tuple[Bracket, int]:
        """The rows of a piece into a Parquet file, in a view of its own; also their number."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table that are wanted: under a condition, into a Parquet file."""

    table: str
    where: str
    path: Path


class SourceTables(Protocol):
    """Several tables of the old database, of which rows that belong together are read in one view."""

    dialect: Dialect

    @property
    def schemas(self) -> Mapping[str, TableSchema]:
        """The tables by name, as they were when reading began."""
        ...

    def count(self, table: str, upto: int, where: str = "1 = 1") -> int:
        """Rows of a table under a condition, counted up to a number."""
        ...

    def end(self, table: str, key: Sequence[tuple[str, str]], where: str, rows: int) -> Key | None:
        """The values that the ``rows``-th row under a condition has in some columns, in their order.

        ``key`` has their names and kinds. None if there are fewer rows.
        """
        ...

    def read(self, parts: Sequence[Part]) -> tuple[Bracket, int]:
        """All the parts in one view; also the number of their rows."""
        ...

    def references(self) -> list[Reference]:
        """The foreign keys between these tables."""
        ...

    def has_index(self, table: str, columns: Sequence[str]) -> bool:
        """Returns whether an index begins with these columns, in any order."""
        ...


class TargetChunks(Protocol):
    """One table of the new database."""

    dialect: Dialect

    @property
    def columns(self) -> tuple[TargetColumnText, ...]:
        """The columns of the table."""
        ...

    def has_key(self, names: Sequence[str]) -> bool:
        """Returns whether a unique index of exactly these columns, none of them nullable, finds rows by key."""
        ...

    def count(self, upto: int) -> int:
        """Counts the table's rows, up to a number."""
        ...

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """The key of the ``rows``-th row under a condition, in the target's own order; None if there are fewer."""
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

    def tables(self, names: Sequence[str]) -> AbstractContextManager[SourceTables]:
        """Sessions for some tables. Raises ``VerifyError``, ``ConnectionFailed``."""
        ...


class ChunkedTarget(Protocol):
    """A target that can be read piece by piece."""

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        ...

    def chunks(self, table: str) -> AbstractContextManager[TargetChunks]:
        """Sessions for one table. Raises ``VerifyError``, ``ConnectionFailed``."""
        ...
