"""Reads chunks beside the log, each in a read view of its own that comes with a witness: what both engines
share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pymysql

from migrator.adapters.sources.binlog.catalog import key_index
from migrator.adapters.sources.binlog.chunks.bulk_rows import BulkResult
from migrator.adapters.sources.binlog.chunks.chunk_scope import bounded, key_of, select_chunk
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.columnar.text import bytes_to_table
from migrator.columnar.versions import widened
from migrator.connections.mysql.packet_buffer import BufferedConnection
from migrator.connections.mysql.result_set import Signature
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.same_server import SameServer
from migrator.errors import ConnectionFailed, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

_UNKNOWN_COLUMN, _NO_TABLE, _NO_KEY, _DEFINITION_CHANGED = 1054, 1146, 1176, 1412
_CHANGED = (_UNKNOWN_COLUMN, _NO_TABLE, _NO_KEY, _DEFINITION_CHANGED)
_ATTEMPTS = 3


class BinlogChunkReader(ABC):
    """Reads chunks. One thread uses it at a time, another than the log reader's."""

    def __init__(
        self,
        source: BinlogSource,
        step: Callable[[str], None] = lambda name: None,
        same: SameServer | None = None,
    ):
        self._source = source
        self._step = step
        self._same = same or SameServer()
        self._connection: Any = None
        self._server = ""
        self._checked: dict[tuple[TableId, str], Signature] = {}
        self._indexes: dict[tuple[TableId, str], str | None] = {}
        self._readable: dict[tuple[TableId, str], TableSchema] = {}

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        """See ``ChunkReader.bounded``. Each key is looked up in a read view of its own."""
        try:
            with named_errors(self._source, f"the bounds of a chunk of {schema.id} can't be read"):
                connection = self._connected()
                try:
                    return bounded(connection, schema, self._index(schema), request)
                except pymysql.err.MySQLError as error:
                    self._indexes.pop((schema.id, schema.version()), None)
                    if error.args and error.args[0] in _CHANGED:
                        raise _changed(schema, str(error.args[1])) from error
                    raise
        except ConnectionFailed:
            self.close()
            raise

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """Reads one chunk in a read view of its own, with its witness and its high position.

        Raises ``SourceError`` when a value can't be represented, ``SchemaError`` when the table no longer has this
        schema, ``ConnectionFailed`` (retryable; the next call connects anew).
        """
        began = time.monotonic()
        try:
            with named_errors(self._source, f"a chunk of {schema.id} can't be read"):
                result, witness, read = self._snapshot(request, schema)
                high = self._log_end(self._connection)
        except ConnectionFailed:
            self.close()
            raise
        count, last_row = len(result), None
        if count:
            values = result.last_row()
            last_row = key_of(schema, [values[place] for place in read.key_indexes()])
        last_key, final = request.ending(count, last_row)
        return Chunk(
            request=request,
            rows=widened(bytes_to_table(read, result.batches), schema),
            row_count=count,
            last_key=last_key,
            final=final,
            witness=witness,
            high=high,
            schema_version=schema.version(),
            elapsed_s=time.monotonic() - began,
        )

    def witness(self) -> Witness:
        """A witness of now. Raises ``ConnectionFailed``."""
        try:
            with named_errors(self._source, "the visible end of the log can't be read"):
                witness = self._begin_view(self._connected())
                self._end_view(self._connection)
                return witness
        except ConnectionFailed:
            self.close()
            raise

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None

    def _connected(self) -> Any:
        if self._connection is None:
            connection = connect(
                self._source,
                read_timeout_s=self._source.answer_timeout_s,
                connection_class=BufferedConnection,
            )
            self._connection = connection
            self._prepare_session(connection)
            self._server = self._server_name(connection)
        self._same.check(
            self._server, self._source.server.address
        )  # each time: the log may have moved meanwhile
        return self._connection

    def _snapshot(
        self, request: ChunkRequest, schema: TableSchema
    ) -> tuple[BulkResult, Witness, TableSchema]:
        """The rows, the witness of their read view, and the schema that they were read with.

        It lacks the columns that the table has no more and nothing needs.
        """
        name = (schema.id, schema.version())
        for attempt in range(1, _ATTEMPTS + 1):
            readable = self._readable.get(name, schema)
            witness = self._begin_view(self._connected())
            self._step("chunk.snapshot")
            try:
                result = select_chunk(self._connection, readable, self._index(schema), request)
            except pymysql.err.MySQLError as error:
                code = error.args[0] if error.args else 0
                self._indexes.pop(name, None)
                if code == _DEFINITION_CHANGED and attempt < _ATTEMPTS:
                    continue  # ALTER TABLE between snapshot and SELECT: a newer snapshot can read the table
                if code == _UNKNOWN_COLUMN and attempt < _ATTEMPTS and self._narrow(name, readable):
                    continue
                if code in _CHANGED:
                    raise _changed(schema, str(error.args[1])) from error
                raise
            self._end_view(self._connection)
            if self._checked.get(name) == result.signature or not self._narrow(name, readable):
                self._checked[name] = result.signature
                return result, witness, readable
        raise _changed(schema, "its definition keeps changing")

    def _index(self, schema: TableSchema) -> str | None:
        known = (schema.id, schema.version())
        if known not in self._indexes:
            self._indexes[known] = key_index(self._connection, schema)
        return self._indexes[known]

    def _narrow(self, name: tuple[TableId, str], schema: TableSchema) -> bool:
        """Compares the table with the catalog when its result looks other than before (or was never seen).

        Asked after the SELECT: a change before it shows, one after it is at worst reported a chunk early.
        Columns that were changed are left out from now on; tells whether there are any. Raises ``SchemaError`` for
        one that a mapping needs.
        """
        catalog = self._read_table(self._connection, schema.id)
        if catalog is None:
            raise _changed(schema, "the table no longer exists")
        now = {column.name: column for column in catalog.schema.columns}
        changed = []
        for column in schema.columns:
            found = now.get(column.name)
            if found is None or (found.type, found.source_type) != (column.type, column.source_type):
                changed.append(column.name)
                if schema.needs(column.name):
                    became = f"is now {found.source_type}" if found else "no longer exists"
                    raise _changed(schema, f"column {column.name} ({column.source_type}) {became}")
        if changed:
            self._readable[name] = schema.without(changed)
        return bool(changed)

    # -- the engine's own

    @abstractmethod
    def _server_name(self, connection: Any) -> str:
        """Names the server, in the words of the log reader."""

    @abstractmethod
    def _prepare_session(self, connection: Any) -> None:
        """Prepares the session of a new connection."""

    @abstractmethod
    def _begin_view(self, connection: Any) -> Witness:
        """Takes the witness of the read view that the next SELECT has (or a later one)."""

    @abstractmethod
    def _end_view(self, connection: Any) -> None:
        """Ends the transaction, if ``_begin_view`` began one."""

    @abstractmethod
    def _log_end(self, connection: Any) -> Position:
        """A place at or after the log record of every transaction visible now."""

    @abstractmethod
    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None: ...


def _changed(schema: TableSchema, cause: str) -> SchemaError:
    return SchemaError(
        "a captured table was changed while it is dumped",
        where=str(schema.id),
        cause=cause,
        remedy="undo the change, or adapt the mapping and start again (docs/how-to/schema-changes.md says where rows"
        " have to be read once more); if that stops here again, start the migration anew (docs/how-to/start-anew.md)",
    )
