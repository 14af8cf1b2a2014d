"""One read-only REPEATABLE READ view of a PostgreSQL database, shared by catalogue queries and bulk reading.

psycopg holds the view and exports it; ADBC imports it and streams record batches, so a table of any size passes
through bounded memory, and everything read belongs to one state of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, cast

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql
from psycopg.conninfo import make_conninfo

from migrator.errors import ConnectionFailed, VerifyError
from verify.settings import ServerSettings

CONNECT_TIMEOUT_S = 10
# PostgreSQL's canonical output: the same words whatever the server's configuration says.
_CANONICAL = {
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
}

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]


def postgres_conninfo(settings: ServerSettings) -> str:
    """A libpq connection string; it holds the password, so it must never be printed."""
    options = " ".join(f"-c {name}={value}" for name, value in _CANONICAL.items())
    return make_conninfo(
        host=settings.host,
        port=settings.port,
        dbname=settings.database,
        user=settings.user,
        password=settings.password or None,
        sslmode=settings.tls,
        sslrootcert=settings.tls_ca or None,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="migrator verify",
        options=options,
    )


def connect_postgres(settings: ServerSettings) -> psycopg.Connection[tuple[Any, ...]]:
    """An autocommit connection whose transactions are read-only. Raises ``ConnectionFailed``."""
    try:
        connection = psycopg.connect(postgres_conninfo(settings), autocommit=True)
        connection.execute("SET default_transaction_read_only = on")
    except psycopg.Error as error:
        raise ConnectionFailed(
            "the server can't be reached for verification",
            where=settings.where(),
            cause=str(error).strip(),
            remedy="check host, port, login and TLS settings",
            retryable=isinstance(error, psycopg.OperationalError),
        ) from error
    return connection


class PostgresSnapshot:
    """An open read view. Made by ``open_snapshot``."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], bulk: Any, where: str):
        self._connection = connection
        self._bulk = bulk
        self._where = where

    def rows(
        self, query: LiteralString | sql.Composed, parameters: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows of a small query. Raises ``VerifyError``."""
        try:
            return self._connection.execute(query, parameters).fetchall()
        except psycopg.Error as error:
            raise VerifyError(
                "a catalogue query failed",
                where=self._where,
                cause=str(error).strip(),
                remedy="check that the login may read the catalogue and the tables concerned",
            ) from error

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
                writer = pq.ParquetWriter(
                    path, convert(empty.rename_columns(list(names))).schema, compression="zstd"
                )
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
                remedy="grant SELECT on the table, or correct the value named",
            ) from error
        finally:
            if writer is not None:
                writer.close()
        return total


@contextmanager
def open_snapshot(settings: ServerSettings) -> Iterator[PostgresSnapshot]:
    """A read view that lasts as long as the context. Raises ``ConnectionFailed``, ``VerifyError``."""
    connection = connect_postgres(settings)
    try:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        token = cast(tuple[Any, ...], connection.execute("SELECT pg_export_snapshot()").fetchone())[0]
        bulk = _bulk_connection(settings, str(token))
        try:
            yield PostgresSnapshot(connection, bulk, settings.where())
        finally:
            bulk.close()
    finally:
        connection.close()


def _bulk_connection(settings: ServerSettings, token: str) -> Any:
    """An ADBC connection inside the exported view; ADBC opens the transaction by itself (autocommit is off)."""
    try:
        bulk = adbc.connect(postgres_conninfo(settings), autocommit=False)
        with bulk.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(token)).as_string())
    except adbc_driver_manager.Error as error:
        raise ConnectionFailed(
            "the bulk reading connection can't join the read view",
            where=settings.where(),
            cause=str(error).splitlines()[0],
            remedy="check that the server allows a second connection of this login",
            retryable=True,
        ) from error
    return bulk
