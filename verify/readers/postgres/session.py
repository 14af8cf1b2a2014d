"""One read-only REPEATABLE READ view of a PostgreSQL database, shared by catalogue queries and bulk reading.

psycopg holds the view and exports it; ADBC imports it and streams record batches, so a table of any size passes
through bounded memory, and everything read belongs to one state of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, cast

import adbc_driver_manager
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql
from psycopg.pq import TransactionStatus

from migrator.errors import ConnectionFailed, VerifyError
from verify.readers.postgres.pins import connect_bulk, connect_postgres
from verify.readers.row_files import row_file
from verify.settings import ServerSettings

_BEGIN: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_END: LiteralString = "ROLLBACK"
# Pieces are read by an index over their key, whatever is known of the table: one without statistics, as a new
# one is, would be read as a whole for a piece with one end, and a piece's places be collected and sorted
# first, at half the price of its digest. Helpers start slower than one process makes a digest, and to compile
# it takes longer than that.
_BY_KEY = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}

_REMEDIES = {
    "42501": "GRANT SELECT on the table (USAGE on its schema) to the login; where row security is on, as a superuser"
    " ALTER ROLE the login BYPASSRLS, for a judge must see all rows",
    "42P01": "a table vanished while it was read: verify again",
    "42703": "a column vanished while it was read: verify again",
    "22": "correct the value named",
    "08": "verify again: the connection was lost",
    "57": "verify again: the server ended the statement",
    "55P03": "verify again when the lock on the table is released",
    "53": "free what the server lacks, then verify again",
}
"""Remedies by the beginning of the server's SQLSTATE."""

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]


class PostgresSnapshot:
    """An open read view. Made by ``open_snapshot``."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], bulk: Any, where: str):
        self._connection = connection
        self._bulk = bulk
        self._where = where

    def rows(
        self, query: LiteralString | sql.Composed, parameters: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows of a small query. Raises ``VerifyError``."""
        try:
            return self._connection.execute(query, parameters or None).fetchall()
        except psycopg.Error as error:
            raise _refused(self._where, error) from error

    def to_parquet(
        self, query: sql.Composed, names: Sequence[str], path: Path, convert: Convert, subject: str
    ) -> int:
        """Streams a query into one Parquet file and returns the number of rows.

        Args:
            query: its columns are named by ``names``, in order.
            names: column names of the file.
            path: the file; replaced if it exists.
            convert: turns each batch as ADBC delivers it into the file's types; must give one schema always.
            subject: the table, for messages.

        Raises:
            VerifyError: the query is refused, or a value can't be represented.
        """
        total = 0
        writer: pq.ParquetWriter | None = None
        try:
            with self._bulk.cursor() as cursor:
                cursor.execute(query.as_string(self._connection))
                reader = cursor.fetch_record_batch()
                empty = pa.RecordBatch.from_pylist([], schema=reader.schema)
                writer = row_file(path, convert(empty.rename_columns(list(names))).schema)
                for batch in reader:
                    writer.write_batch(convert(batch.rename_columns(list(names))))
                    total += batch.num_rows
        except (
            adbc_driver_manager.Error,
            pa.ArrowException,
            OSError,
        ) as error:  # Arrow's streams raise OSError
            raise VerifyError(
                "a table can't be read for verification",
                where=f"{self._where}, {subject}",
                cause=str(error).splitlines()[0],
                remedy=_remedy(getattr(error, "sqlstate", None) or "22000"),
            ) from error
        finally:
            if writer is not None:
                writer.close()
        return total


class PostgresViews:
    """Read views one after the other, over sessions that stay. Made by ``open_views``."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], settings: ServerSettings):
        self._connection = connection
        self._settings = settings
        self._bulk: Any = None
        self._path = ""

    @contextmanager
    def view(self, bulk: bool = False) -> Iterator[PostgresSnapshot]:
        """A view that lasts as long as the context; it begins with its first query. ``bulk``: for ``to_parquet``.

        Raises ``ConnectionFailed``, ``VerifyError``.
        """
        self._do(_BEGIN)
        try:
            if bulk:
                token = cast(tuple[Any, ...], self._do("SELECT pg_export_snapshot()").fetchone())[0]
                self._bulk = self._bulk or connect_bulk(self._settings)
                _join(self._bulk, str(token), self._settings, self._path)
            yield PostgresSnapshot(self._connection, self._bulk, self._settings.server.url())
        finally:
            if bulk and self._bulk is not None:
                self._bulk.rollback()
            if not self._connection.closed:
                self._do(_END)

    def at_once(self, *queries: sql.Composed) -> list[list[tuple[Any, ...]]]:
        """The rows of each of some queries, from one view of their own, for one message there and one back.

        A piece's digest takes its server some milliseconds, and each message more leaves it idle for a tenth
        of one. Raises ``VerifyError``.
        """
        try:
            cursor = self._connection.execute(sql.SQL("; ").join([sql.SQL(_BEGIN), *queries, sql.SQL(_END)]))
            return [cursor.fetchall() for _ in queries if cursor.nextset()]
        except psycopg.Error as error:
            if not self._connection.closed:
                self._do(_END)
            raise _refused(self._settings.server.url(), error) from error

    def compare_by(self, path: str) -> None:
        """Sets the ``search_path`` (``postgres_operators``) by which operators are found from now on; only between
        views."""
        if path:
            self._do(sql.SQL("SET search_path = {}").format(sql.SQL(path)))
            self._path = path

    def between(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The session, for what belongs to no view; the view before is gone."""
        assert self._connection.info.transaction_status == TransactionStatus.IDLE
        return self._connection

    def close(self) -> None:
        """Ends the session that ``to_parquet`` uses."""
        if self._bulk is not None:
            self._bulk.close()

    def _do(self, statement: LiteralString | sql.Composed) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement)
        except psycopg.Error as error:
            raise ConnectionFailed(
                "a read view can't be opened for verification",
                where=self._settings.server.url(),
                cause=str(error).strip(),
                remedy="verify again; if it repeats, see the server's log",
                retryable=True,
            ) from error


@contextmanager
def open_views(settings: ServerSettings) -> Iterator[PostgresViews]:
    """Sessions for views one after the other. Raises ``ConnectionFailed``."""
    connection = connect_postgres(settings, more=_BY_KEY)
    views = PostgresViews(connection, settings)
    try:
        yield views
    finally:
        views.close()
        connection.close()


@contextmanager
def open_snapshot(settings: ServerSettings) -> Iterator[PostgresSnapshot]:
    """One read view that lasts as long as the context. Raises ``ConnectionFailed``, ``VerifyError``."""
    with open_views(settings) as views, views.view(bulk=True) as view:
        yield view


def _refused(where: str, error: psycopg.Error) -> VerifyError:
    return VerifyError(
        "a query was refused",
        where=where,
        cause=str(error).strip(),
        remedy=_remedy(error.sqlstate),
    )


def _remedy(sqlstate: str | None) -> str:
    """Returns the remedy for a refusal. A policy is refused like a missing right, and the words are the server's."""
    return next(
        (remedy for state, remedy in _REMEDIES.items() if (sqlstate or "08").startswith(state)),
        "verify again; if it repeats, report it with the cause: the statement is ours",
    )


def _join(bulk: Any, token: str, settings: ServerSettings, path: str) -> None:
    try:
        with bulk.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(token)).as_string())
            if path:
                cursor.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.SQL(path)).as_string())
    except adbc_driver_manager.Error as error:
        raise _not_joined(settings, error) from error


def _not_joined(settings: ServerSettings, error: Exception) -> ConnectionFailed:
    return ConnectionFailed(
        "the bulk reading connection can't join the read view",
        where=settings.server.url(),
        cause=str(error).splitlines()[0],
        remedy="check that the server allows a second connection of this login",
        retryable=True,
    )
