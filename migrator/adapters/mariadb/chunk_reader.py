"""Reads chunks beside the log, each in a consistent snapshot that says where in the log it stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pymysql

from migrator.adapters.mariadb.catalog import key_index, log_end, query, read_table
from migrator.adapters.mariadb.keyset import chunk_select
from migrator.adapters.mariadb.packet_stream import BufferedConnection
from migrator.adapters.mariadb.position import file_number
from migrator.adapters.mariadb.result_set import Columns, ResultSet, Signature, read_columns
from migrator.adapters.mariadb.settings import MariaSource, connect, named_errors
from migrator.adapters.mariadb.witness import BinlogWitness
from migrator.columnar.text import columns_to_table
from migrator.errors import ConnectionFailed, SchemaError, SourceError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, Value
from migrator.model.table import TableId, TableSchema

_UNKNOWN_COLUMN, _NO_TABLE, _NO_KEY, _DEFINITION_CHANGED = 1054, 1146, 1176, 1412
_ATTEMPTS = 3


class MariaChunkReader:
    """Reads chunks. One thread uses it at a time, another than the log reader's."""

    def __init__(self, source: MariaSource, step: Callable[[str], None] = lambda name: None):
        self._source = source
        self._step = step
        self._connection: Any = None
        self._checked: dict[tuple[TableId, str], Signature] = {}
        self._indexes: dict[tuple[TableId, str], str | None] = {}

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """Reads one chunk in a read view of its own, with its witness and its high position.

        Raises ``SourceError`` when a value can't be represented, ``SchemaError`` when the table no longer has this
        schema, ``ConnectionFailed`` (retryable; the next call connects anew).
        """
        began = time.monotonic()
        try:
            with named_errors(self._source, f"a chunk of {schema.id} can't be read"):
                result, witness = self._snapshot(request, schema)
                high = log_end(self._connection)
        except ConnectionFailed:
            self.close()
            raise
        count = len(result.columns[0])
        return Chunk(
            request=request,
            rows=columns_to_table(schema, result.columns),
            row_count=count,
            last_key=_last_key(schema, result.columns) if count else None,
            final=count < request.limit_rows,
            witness=witness,
            high=high,
            schema_version=schema.version(),
            elapsed_s=time.monotonic() - began,
        )

    def witness(self) -> BinlogWitness:
        """A witness of now. Raises ``ConnectionFailed``."""
        try:
            with named_errors(self._source, "the visible end of the log can't be read"):
                witness = self._begin()
                query(self._connection, "COMMIT")
                return witness
        except ConnectionFailed:
            self.close()
            raise

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None

    def _begin(self) -> BinlogWitness:
        """Opens a consistent snapshot and asks where it stands."""
        if self._connection is None:
            self._connection = connect(
                self._source,
                read_timeout_s=self._source.answer_timeout_s,
                connection_class=BufferedConnection,
            )
            # only REPEATABLE READ keeps one read view, and only then is the snapshot taken at once
            query(self._connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        query(self._connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        status = dict(query(self._connection, "SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
        place = {name.lower(): value for name, value in status.items()}
        file = str(place.get("binlog_snapshot_file") or "")
        if not file:
            raise SourceError(
                "the server doesn't say where its snapshot stands in the log",
                where=self._source.where,
                cause="binlog_snapshot_file is empty",
                remedy="turn the binary log on (log_bin)",
            )
        return BinlogWitness(file_number(file), int(place["binlog_snapshot_position"]))

    def _snapshot(self, request: ChunkRequest, schema: TableSchema) -> tuple[ResultSet, BinlogWitness]:
        for attempt in range(1, _ATTEMPTS + 1):
            witness = self._begin()
            self._step("chunk.snapshot")
            try:
                result = self._select(request, schema)
            except pymysql.err.MySQLError as error:
                code = error.args[0] if error.args else 0
                self._indexes.pop((schema.id, schema.version()), None)
                if code == _DEFINITION_CHANGED and attempt < _ATTEMPTS:
                    continue  # ALTER TABLE between snapshot and SELECT: a newer snapshot can read the table
                if code in (_UNKNOWN_COLUMN, _NO_TABLE, _NO_KEY, _DEFINITION_CHANGED):
                    raise _changed(schema, str(error.args[1])) from error
                raise
            query(self._connection, "COMMIT")
            self._check(schema, result.signature)
            return result, witness
        raise _changed(schema, "its definition keeps changing")

    def _select(self, request: ChunkRequest, schema: TableSchema) -> ResultSet:
        known = (schema.id, schema.version())
        if known not in self._indexes:
            self._indexes[known] = key_index(self._connection, schema)
        sql = chunk_select(
            schema, self._indexes[known], request.after, request.limit_rows, self._connection.escape
        )
        return read_columns(self._connection, sql)

    def _check(self, schema: TableSchema, signature: Signature) -> None:
        """Compares the table with the catalog when its result looks other than before (or was never seen).

        Asked after the SELECT: a change before it shows, one after it is at worst reported a chunk early.
        """
        known = (schema.id, schema.version())
        if self._checked.get(known) == signature:
            return
        catalog = read_table(self._connection, schema.id)
        if catalog is None:
            raise _changed(schema, "the table no longer exists")
        now = {column.name: column for column in catalog.schema.columns}
        for column in schema.columns:
            found = now.get(column.name)
            if found is None or (found.type, found.source_type) != (column.type, column.source_type):
                became = f"is now {found.source_type}" if found else "no longer exists"
                raise _changed(schema, f"column {column.name} ({column.source_type}) {became}")
        self._checked[known] = signature


def _last_key(schema: TableSchema, columns: Columns) -> Key:
    values: list[Value] = []
    for place in schema.key_indexes():
        value = columns[place][-1]
        values.append(value if value is None or schema.columns[place].type == "binary" else value.decode())
    return tuple(values)


def _changed(schema: TableSchema, cause: str) -> SchemaError:
    return SchemaError(
        "a captured table was changed while it is dumped",
        where=str(schema.id),
        cause=cause,
        remedy="undo the change, or adapt the mapping and start a new dump of the table",
    )
