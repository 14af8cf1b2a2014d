"""Reads chunks beside the log: one REPEATABLE READ, READ ONLY transaction each, straight into Arrow.

Steps of one chunk, and why in this order:

1. ``LOCK TABLE ... IN ACCESS SHARE MODE`` (the lock any SELECT takes) BEFORE the snapshot. A rewriting ALTER
TABLE or
   a TRUNCATE that commits between snapshot and SELECT would make the table look empty; with the lock first it is
   either wholly before the snapshot or waits for the end of the chunk.
2. One statement takes the snapshot (the witness) and then ``high``, a place in the log behind all that the snapshot
   shows (``read_view`` has the reasons, on a primary and on a standby). ``high`` may be taken before the
   SELECT: the rows are those of the snapshot.
3. The table's structure is compared in the same snapshot; then the SELECT; COMMIT.

The key of the previous row is bound with ``set_config``, so the SELECT has no parameters: ADBC then takes its
binary COPY path, several times faster. Types that binary COPY doesn't bring over exactly travel as text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import adbc_driver_manager

from migrator.adapters.sources.postgres.chunks.arrow_rows import to_schema
from migrator.adapters.sources.postgres.chunks.chunk_query import ChunkQuery
from migrator.adapters.sources.postgres.chunks.chunk_scope import bounded, scoped
from migrator.adapters.sources.postgres.chunks.read_view import WAL_VIEWS, Views
from migrator.adapters.sources.postgres.connection import named_failure
from migrator.adapters.sources.postgres.lsn import server_name
from migrator.adapters.sources.postgres.reflection import ReflectedTable, operator_path, reflect
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.watched import SilentSource, WatchedConnection
from migrator.columnar.versions import widened
from migrator.connections.same_server import SameServer
from migrator.errors import MigratorError, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.table import TableId, TableSchema

Result = TypeVar("Result")

# The first eight digits of a WAL file's name are the timeline; a standby writes no WAL.
_SERVER = """
SELECT system_identifier::text, CASE WHEN NOT pg_catalog.pg_is_in_recovery()
         THEN pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8) END
FROM pg_catalog.pg_control_system()
"""
_NUMBER = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid::int8"
_PLANNER = (
    # A chunk is a range of an index; a scan and sort of the whole table per chunk would make the dump quadratic.
    "SELECT pg_catalog.set_config('enable_seqscan', 'off', false), "
    "pg_catalog.set_config('enable_bitmapscan', 'off', false), "
    "pg_catalog.set_config('max_parallel_workers_per_gather', '0', false), "
    "pg_catalog.set_config('jit', 'off', false)"
)


class PostgresChunkReader:
    """Implements ``ChunkReader`` on one ADBC connection, made when first needed and again after a failure.

    Args:
        source: where to read.
        step: hook at named points.
        views: what snapshots mean to the log reader that is used beside it.
        same: knows which server the log is read from.
    """

    def __init__(
        self,
        source: PostgresSource,
        step: Callable[[str], None] = lambda name: None,
        views: Views = WAL_VIEWS,
        same: SameServer | None = None,
    ):
        self._source = source
        self._step = step
        self._views = views
        self._same = same or SameServer()
        self._connection: WatchedConnection | None = None
        self._server = ""
        self._queries: dict[tuple[TableId, str], ChunkQuery] = {}  # two tables may have one structure

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        """See ``ChunkReader.bounded``."""

        def find(cursor: Any) -> ChunkRequest:
            self._begin(cursor, schema)
            # One that was compared before will do: the read compares again.
            query = self._queries.get((schema.id, schema.version())) or self._query(
                cursor, schema, "the present"
            )
            _tell(cursor, query)
            found = bounded(cursor, query, request)
            cursor.execute("COMMIT")
            return found

        return self._called(f"the bounds of a chunk of {schema.id} can't be read", schema, find)

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """See ``ChunkReader.read``."""
        started = time.monotonic()
        what = f"a chunk of {schema.id} can't be read"
        return self._called(what, schema, lambda cursor: self._read(cursor, request, schema, started))

    def witness(self) -> Witness:
        """See ``ChunkReader.witness``."""

        def read(cursor: Any) -> Witness:
            return self._views.take(cursor, self._views.before(cursor)).witness

        return self._called("the source's snapshot can't be read", None, read)

    def close(self) -> None:
        """See ``ChunkReader.close``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _called(self, what: str, schema: TableSchema | None, work: Callable[[Any], Result]) -> Result:
        """The result of work on the connection; after any error the next call makes a new one."""
        connection, self._connection = self._connection, None
        if connection is None:
            connection, self._server = WatchedConnection(self._source, _PLANNER), ""
        try:
            result = connection.call(what, lambda cursor: self._on_same_server(cursor, work))
        except adbc_driver_manager.Error as error:
            connection.close()
            raise self._failure(what, schema, error) from error
        except SilentSource:  # the call that was left behind closes it
            raise
        except BaseException:
            connection.close()  # the transaction goes with its connection
            raise
        self._connection = connection
        return result

    def _on_same_server(self, cursor: Any, work: Callable[[Any], Result]) -> Result:
        """The result of work, unless this is another server than the log's.

        A connection keeps its server, so each is asked once.
        """
        if not self._views.beside_wal:
            return work(cursor)
        if not self._server:
            cursor.execute(_SERVER)
            system, timeline = cursor.fetchone()
            self._server = server_name(system, int(timeline, 16) if timeline is not None else None)
        self._same.check(self._server, self._source.server.address)
        return work(cursor)

    def _begin(self, cursor: Any, schema: TableSchema) -> None:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"LOCK TABLE {ChunkQuery.name_of(schema.id)} IN ACCESS SHARE MODE")

    def _read(self, cursor: Any, request: ChunkRequest, schema: TableSchema, started: float) -> Chunk:
        before = self._views.before(cursor)
        self._begin(cursor, schema)
        view = self._views.take(cursor, before)
        self._step("chunk.snapshot")
        query = self._query(cursor, schema, view.high.token.partition("@")[0])
        _tell(cursor, query)
        cursor.execute(scoped(cursor, query, request))
        raw = cursor.fetch_arrow_table()
        # Its lock keeps a table's name, but not its schema's: the SELECT may have been of another table.
        cursor.execute(_NUMBER, (ChunkQuery.name_of(schema.id),))
        self._same.check_table(schema.id, cursor.fetchone()[0] or 0)
        cursor.execute("COMMIT")
        view.settled(cursor)
        last_key, final = request.ending(raw.num_rows, query.last_key(raw))
        return Chunk(
            request=request,
            rows=widened(to_schema(query.schema, raw.select(range(len(query.schema.columns)))), schema),
            row_count=raw.num_rows,
            last_key=last_key,
            final=final,
            witness=view.witness,
            high=view.high,
            schema_version=schema.version(),
            elapsed_s=time.monotonic() - started,
        )

    def _query(self, cursor: Any, schema: TableSchema, place: str) -> ChunkQuery:
        """The SELECT for this schema, once the table was found to still have it."""

        def query(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            cursor.execute(statement, tuple(parameters) or None)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

        table = reflect(query, schema.id, self._source.choices(schema.id))
        if table is None:
            raise _changed(schema, "the table is gone", place)
        self._same.check_table(schema.id, table.oid)
        _check_order(schema, table, place)
        name = (schema.id, schema.version())
        known = self._queries.get(name)
        if known is None or known.table != table:
            readable = schema.without(_unreadable(schema, table, place))
            keys = [column for column in table.columns if column.column.name in schema.key]
            known = self._queries[name] = ChunkQuery(readable, table, operator_path(query, keys))
        return known

    def _failure(self, what: str, schema: TableSchema | None, error: Any) -> MigratorError:
        sqlstate = getattr(error, "sqlstate", None)
        if schema is not None and sqlstate in ("42P01", "42703"):  # undefined table, undefined column
            return _changed(schema, " ".join(str(error).split()), "the present")
        return named_failure(self._source, what, sqlstate, str(error))


def _tell(cursor: Any, query: ChunkQuery) -> None:
    if settings := query.settings():
        cursor.execute(settings)


def _unreadable(schema: TableSchema, table: ReflectedTable, place: str) -> list[str]:
    """Checks that the table still has the schema's key and the columns that are needed; more may have been added.

    Returns the columns that it has no more, or no more of that type: nothing needs them.
    """
    columns = {reflected.column.name: reflected.column for reflected in table.columns}
    unreadable = []
    for wanted in schema.columns:
        found = columns.get(wanted.name)
        if found is not None and found.type == wanted.type:
            continue
        if not schema.needs(wanted.name):
            unreadable.append(wanted.name)
        elif found is None:
            raise _changed(schema, f"column {wanted.name!r} is gone", place)
        else:
            change = f"from {wanted.source_type} to {found.source_type}"
            raise _changed(schema, f"column {wanted.name!r} changed its type {change}", place)
    if table.schema.key != schema.key:
        raise _changed(schema, f"its key is now ({', '.join(table.schema.key)})", place)
    return unreadable


def _check_order(schema: TableSchema, table: ReflectedTable, place: str) -> None:
    """Checks that keys sort as they did: behind the last one that was read there may be others by now."""
    if schema.order and table.schema.key == schema.key and table.schema.order != schema.order:
        now, then = (", ".join(filter(None, orders)) for orders in (table.schema.order, schema.order))
        raise SchemaError(
            f"the key of table {schema.id} sorts otherwise than when its dump began",
            where=f"{schema.id} at {place}",
            cause=f"by {now or 'bytes'}, and not by {then or 'bytes'}",
            remedy="start the run again: the dump of this table begins anew",
        )


def _changed(schema: TableSchema, cause: str, place: str) -> SchemaError:
    return SchemaError(
        f"table {schema.id} no longer has the structure it is dumped with",
        where=f"{schema.id} at {place}",
        cause=cause,
        remedy="undo the change, or start the migration anew (docs/how-to/start-anew.md)",
    )
