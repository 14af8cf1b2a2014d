"""Reads source tables of MySQL and MariaDB in the logical types of the event stream, from one consistent snapshot.

Values come over the text protocol without conversion and are parsed here; whatever Arrow can't hold exactly
stays the server's own text (zero and partial dates are values).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.connections.mysql.unlogged import UNLOGGED
from migrator.errors import VerifyError
from migrator.model.table import Column, TableId, TableSchema
from verify.readers.mysql.chunks import MySQLSourceChunks
from verify.readers.mysql.rows import row_batches
from verify.readers.mysql.session import open_session, quoted, rows_of
from verify.readers.mysql.tables import MySQLSourceTables
from verify.readers.pending import Pending
from verify.readers.row_files import row_file
from verify.readers.snapshot import (
    LedgerState,
    LogPlace,
    SourceSnapshot,
    SourceTable,
    Viewed,
    unheard,
)
from verify.settings import ServerSettings

_DECIMAL_DIGITS_MAX = 38
_INTEGERS = {
    "tinyint": ("int8", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", "decimal(20,0)"),
}
"""Logical type of the signed and of the unsigned kind."""
_BINARY = {
    "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit",
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection", "geomcollection", "vector",
}  # fmt: skip
_OTHER = {"float": "float32", "double": "float64", "year": "int16"}
_ARROW = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}


class BinlogSource(ABC):
    """The old database on MySQL or MariaDB, but for what they call places in their logs."""

    def __init__(self, settings: ServerSettings):
        self._settings = settings

    def snapshot(self, tables: Sequence[str], directory: Path, viewed: Viewed = unheard) -> SourceSnapshot:
        """See ``verify.readers.source.SourceReader``."""
        with self._session() as session, self._session() as places:
            low = self.place_before(places)
            rows_of(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            high = self.place_after(places)
            viewed(high)
            found = {
                name: self._read(session, name, directory / f"source-{index}.parquet")
                for index, name in enumerate(tables)
            }
        return SourceSnapshot(low, high, found)

    def position(self) -> LogPlace:
        """The log's end now."""
        with self._session() as session:
            return self.place_after(session)

    @abstractmethod
    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether the log holds anything after the ledger's position; other tables' changes count too."""

    @abstractmethod
    def place_before(self, session: Any) -> LogPlace:
        """Returns a place in the log that every later read view contains."""

    @abstractmethod
    def place_after(self, session: Any) -> LogPlace:
        """Returns a place in the log at or after everything that is visible."""

    @contextmanager
    def chunks(self, table: str) -> Iterator[MySQLSourceChunks]:
        """See ``verify.readers.ports.ChunkedSource``."""
        with self._session() as session, self._session() as places:
            schema = reflect_table(session, TableId(self._settings.server.database, table))

            def read(session: Any, where: str, path: Path) -> int:
                return _read_rows(session, schema, path, where)

            yield MySQLSourceChunks(session, places, (self.place_before, self.place_after), schema, read)

    @contextmanager
    def tables(self, names: Sequence[str]) -> Iterator[MySQLSourceTables]:
        """See ``verify.readers.ports.ChunkedSource``."""
        with self._session() as session, self._session() as places:
            schemas = {
                name: reflect_table(session, TableId(self._settings.server.database, name)) for name in names
            }
            around = self.place_before, self.place_after
            yield MySQLSourceTables(session, places, around, schemas, _read_rows)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        with open_session(self._settings, "source") as session:
            yield session

    def _read(self, session: Any, name: str, path: Path) -> SourceTable:
        schema = reflect_table(session, TableId(self._settings.server.database, name))
        return SourceTable(schema, path, _read_rows(session, schema, path))


def _read_rows(session: Any, schema: TableSchema, path: Path, where: str = "1 = 1") -> int:
    """The rows under a condition into a Parquet file; gives their number."""
    selected = ", ".join(_expression(column) for column in schema.columns)
    query = f"SELECT {selected} FROM {quoted(schema.id.schema)}.{quoted(schema.id.name)} WHERE {where}"
    total = 0
    wanted = pa.schema([pa.field(c.name, _arrow_type(c)) for c in schema.columns])
    with row_file(path, wanted) as writer:
        for columns in row_batches(session, query):
            writer.write_table(_table(schema, wanted, columns))
            total += len(columns[0])
    return total


def reflect_table(session: Any, table: TableId) -> TableSchema:
    """Columns with logical types, and the primary key. Raises ``VerifyError`` when there is no such table.

    Columns that the log may lack, virtual ones and those of newer servers of MariaDB, are left out: a mapping never
    sees them.
    """
    columns = tuple(
        Column(
            name=name,
            type=logical_type(base, declared, int(precision or 0), int(scale or 0)),
            nullable=nullable == "YES",
            source_type=declared,
            collation=collation or "",
        )
        for name, base, declared, precision, scale, nullable, collation in rows_of(
            session,
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable,"
            " collation_name"
            " FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            f" AND NOT {UNLOGGED} ORDER BY ordinal_position",
            (table.schema, table.name),
        )
    )
    if not columns:
        raise VerifyError(
            f"source table {table} does not exist",
            where=str(table),
            remedy="correct the parameter of the mapping function, or grant SELECT on the table",
        )
    key = rows_of(
        session,
        "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s"
        " AND index_name = 'PRIMARY' ORDER BY seq_in_index",
        (table.schema, table.name),
    )
    return TableSchema(table, columns, tuple(name for (name,) in key))


def logical_type(base: str, declared: str, precision: int, scale: int) -> str:
    """Returns the logical type of a column type: native where exact, else ``binary`` or the server's text.

    Args:
        base: ``DATA_TYPE`` of the information schema.
        declared: ``COLUMN_TYPE``, which says ``unsigned``.
        precision: digits of a decimal.
        scale: digits after the point of a decimal.
    """
    base = base.lower()
    if base in _INTEGERS:
        return _INTEGERS[base]["unsigned" in declared.lower()]
    if base == "decimal":
        return f"decimal({precision},{scale})" if precision <= _DECIMAL_DIGITS_MAX else "string"
    return "binary" if base in _BINARY else _OTHER.get(base, "string")


def _expression(column: Column) -> str:
    # A float printed as such has six digits; as a double it has all of them.
    name = quoted(column.name)
    if column.source_type.startswith("vector"):  # the driver would take a type that it doesn't know for ASCII
        return f"CAST({name} AS BINARY)"
    return f"CAST({name} AS DOUBLE)" if column.type == "float32" else name


def _arrow_type(column: Column) -> pa.DataType:
    decimal = column.decimal()
    return pa.decimal128(*decimal) if decimal else _ARROW[column.type]


def _table(schema: TableSchema, wanted: pa.Schema, columns: list[pa.Array]) -> pa.Table:
    arrays = []
    for column, field, values in zip(schema.columns, wanted, columns, strict=True):
        try:
            arrays.append(
                values if column.type == "binary" else pc.cast(pc.cast(values, pa.string()), field.type)
            )
        except pa.ArrowException as error:
            raise VerifyError(
                f"column {column.name} holds a value that its logical type {column.type} can't represent",
                where=f"{schema.id}.{column.name} {column.source_type}",
                cause=str(error).splitlines()[0],
                remedy="correct the value in the source",
            ) from error
    return pa.Table.from_arrays(arrays, schema=wanted)
