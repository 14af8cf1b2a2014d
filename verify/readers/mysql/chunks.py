"""Pieces of a MySQL or MariaDB table, source or target, over sessions that stay: each piece has a view of its
own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrator.model.table import TableSchema
from verify.readers.chunk_keys import (
    BYTES,
    DATE,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Dialect,
    Key,
    KeyColumn,
)
from verify.readers.mysql.session import quoted, rows_and_warnings, rows_of, whole_rows
from verify.readers.ports import Bracket, Digest
from verify.readers.snapshot import LedgerState, LogPlace, TargetColumnText

VIEW = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_UNIQUE = """
SELECT index_name, column_name, nullable, sub_part FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0 ORDER BY index_name, seq_in_index
"""


def literal(kind: str, value: str) -> str:
    """A key's canonical text, checked before, as the server reads it."""
    if kind == BYTES:
        return f"X'{value}'"
    if kind == TEXT:
        return f"_utf8mb4 X'{value.encode().hex()}'"
    if kind == DATE:
        return f"DATE_ADD('1970-01-01', INTERVAL {value} DAY)"
    if kind in (TIMESTAMP, TIMESTAMPTZ):  # the session is in UTC
        return f"TIMESTAMPADD(MICROSECOND, {value}, '1970-01-01 00:00:00')"
    return value


DIALECT = Dialect(quoted, literal, rows=False, nul=True)
Read = Callable[[Any, str, Path], int]
"""Reads the rows under a condition into a Parquet file; gives their number."""


class MySQLSourceChunks:
    """See ``verify.readers.ports.SourceChunks``. ``places`` is a session outside all views."""

    dialect = DIALECT

    def __init__(
        self,
        session: Any,
        places: Any,
        around: tuple[Callable[[Any], LogPlace], Callable[[Any], LogPlace]],
        schema: TableSchema,
        read: Read,
    ):
        self._session, self._places, self._around = session, places, around
        self._schema, self._read = schema, read

    @property
    def schema(self) -> TableSchema:
        """The table, as it was when reading began."""
        return self._schema

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """See the port. It counts within one chunk of the index, so that it costs the same at any place."""
        names = [(column.source, column.kind) for column in key]
        return nth_key(self._session, self._name(), names, where, rows)

    def ends(self, key: KeyColumn) -> tuple[str, str] | None:
        """See the port."""
        column = quoted(key.source)
        [(least, greatest)] = whole_rows(
            self._session, f"SELECT MIN({column}) + 0, MAX({column}) + 0 FROM {self._name()}"
        )
        return None if least is None else (str(least), str(greatest))

    def digest(self, numbers: str, where: str) -> tuple[Bracket, Digest]:
        """See the port."""
        with self._bracketed() as places:
            found = digest(self._session, f"SELECT {numbers} FROM {self._name()} WHERE {where}")
        return Bracket(*places), found

    def read(self, where: str, path: Path) -> tuple[Bracket, int]:
        """See the port."""
        with self._bracketed() as places:
            rows = self._read(self._session, where, path)
        return Bracket(*places), rows

    @contextmanager
    def _bracketed(self) -> Iterator[list[LogPlace]]:
        """A view, with the log's end before it and after it."""
        before, after = self._around
        places = [before(self._places)]
        rows_of(self._session, VIEW)
        places.append(after(self._places))
        yield places
        rows_of(self._session, "ROLLBACK")

    def _name(self) -> str:
        return f"{quoted(self._schema.id.schema)}.{quoted(self._schema.id.name)}"


class MySQLTargetChunks:
    """See ``verify.readers.ports.TargetChunks``."""

    dialect = DIALECT

    def __init__(
        self,
        session: Any,
        ledger: Callable[[Any], LedgerState | None],
        table: tuple[str, str],
        columns: tuple[TargetColumnText, ...],
        read: Read,
    ):
        self._session, self._ledger, self._table = session, ledger, table
        self._columns, self._read = columns, read

    @property
    def columns(self) -> tuple[TargetColumnText, ...]:
        """The columns of the table."""
        return self._columns

    def has_key(self, names: Sequence[str]) -> bool:
        """See the port."""
        found: dict[str, list[str]] = {}
        for index, column, nullable, part in rows_of(self._session, _UNIQUE, self._table):
            whole = nullable != "YES" and part is None
            found.setdefault(index, []).append(str(column) if whole else "")
        return list(names) in found.values()

    def count(self, upto: int) -> int:
        """See the port."""
        return counted(self._session, self._name(), upto)

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """See the port."""
        names = [(column.target, column.kind) for column in key]
        return nth_key(self._session, self._name(), names, where, rows)

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        return self._ledger(self._session)

    def digest(self, numbers: str, where: str) -> tuple[LedgerState | None, Digest]:
        """See the port."""
        with self._view() as ledger:
            return ledger, digest(self._session, f"SELECT {numbers} FROM {self._name()} WHERE {where}")

    def read(self, where: str, path: Path) -> tuple[LedgerState | None, int]:
        """See the port."""
        with self._view() as ledger:
            return ledger, self._read(self._session, where, path)

    def _name(self) -> str:
        return ".".join(map(quoted, self._table))

    @contextmanager
    def _view(self) -> Iterator[LedgerState | None]:
        rows_of(self._session, VIEW)
        yield self._ledger(self._session)
        rows_of(self._session, "ROLLBACK")


def digest(session: Any, query: str) -> Digest:
    """Runs a query with a select list of ``verify.tables.hashed_by_servers.text_hash`` and returns its digest; a
    warning means that its text isn't whole."""
    [row], warnings = rows_and_warnings(session, query)
    return digest_of(row, warned=warnings > 0)


def digest_of(row: Sequence[Any], warned: bool = False) -> Digest:
    """Makes a digest from the number of rows and their hash."""
    return Digest(int(row[0]), 0 if warned else int(row[0]), (int(row[1]),))


def nth_key(session: Any, table: str, key: Sequence[tuple[str, str]], where: str, rows: int) -> Key | None:
    """The key of the ``rows``-th row under a condition, in key order; None if there are fewer.

    Args:
        session: any.
        table: quoted.
        key: names and kinds of its columns.
        where: the condition.
        rows: at least 1.
    """
    texts = ", ".join(_key_text(kind).format(quoted(name)) for name, kind in key)
    # Qualified: a bare name would be the text that is selected, and its order another one.
    order = ", ".join(f"rows_.{quoted(name)}" for name, _ in key)
    query = f"SELECT {texts} FROM {table} AS rows_ WHERE {where} ORDER BY {order} LIMIT 1 OFFSET {rows - 1:d}"
    found = whole_rows(session, query)
    return tuple(map(str, found[0])) if found else None


def counted(session: Any, table: str, upto: int, where: str = "1 = 1") -> int:
    """Rows of a table under a condition, counted up to a number."""
    rows = f"SELECT 1 FROM {table} WHERE {where} LIMIT {upto:d}"
    return int(whole_rows(session, f"SELECT COUNT(*) FROM ({rows}) AS counted_")[0][0])


def _key_text(kind: str) -> str:
    if kind == BYTES:
        return "LOWER(HEX({0}))"
    if kind == TEXT:
        return "CONVERT({0} USING utf8mb4)"
    if kind == DATE:
        return "CAST(DATEDIFF({0}, '1970-01-01') AS CHAR)"
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        return "CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {0}) AS CHAR)"
    return "CAST({0} + 0 AS CHAR)"
