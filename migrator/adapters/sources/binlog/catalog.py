"""The structure of a source, from information_schema: what both engines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from migrator.adapters.sources.binlog.check_scope import check_scope
from migrator.adapters.sources.binlog.doubted import condition
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query
from migrator.connections.mysql.unlogged import UNLOGGED
from migrator.errors import SourceError
from migrator.model.event import MarkKind
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.position import Position
from migrator.model.reach import Reference
from migrator.model.requests.request import Scope
from migrator.model.table import Column, TableId, TableSchema

LogicalType = Callable[[str, str], str | None]
"""The logical type of a column from its DATA_TYPE and COLUMN_TYPE; None when it can't be read from the log."""


def read_table(connection: Any, table: TableId, logical_type: LogicalType) -> CatalogTable | None:
    """A table as the catalog has it now, or None when there is no base table of that name.

    Columns come in the order of declaration. Stored generated and invisible columns are columns like others
    (the log has them); those that it lacks are left out: they can be computed from the rest. The key is the primary
    key, else the first unique index over not-null columns; it is empty when there is none. Raises
    ``SourceError`` for a column type that can't be read.
    """
    found = query(
        connection,
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        " AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')",
        (table.schema, table.name),
    )
    if not found:
        return None
    rows = query(
        connection,
        f"SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME, EXTRA, {UNLOGGED}"
        " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (table.schema, table.name),
    )
    unlogged = frozenset(row[0] for row in rows if row[6])
    stored = frozenset(row[0] for row in rows if "STORED GENERATED" in row[5].upper()) - unlogged
    columns = tuple(_column(table, row, logical_type) for row in rows if row[0] not in unlogged)
    usable = {column.name for column in columns if not column.nullable}
    index, key = _key(connection, table, usable)
    return CatalogTable(TableSchema(table, columns, key), unlogged, index, stored)


def _column(table: TableId, row: tuple[Any, ...], logical_type: LogicalType) -> Column:
    name, data_type, column_type, nullable, collation, *_ = row
    logical = logical_type(data_type.lower(), column_type.lower())
    if logical is None:
        raise SourceError(
            f"column {table}.{name} has a type that can't be read from the log",
            where=str(column_type),
            remedy="change the column's type, or leave the table out of the migration",
        )
    return Column(name, logical, nullable == "YES", column_type, collation or "")


def _key(connection: Any, table: TableId, usable: set[str]) -> tuple[str, tuple[str, ...]]:
    rows = query(
        connection,
        "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX",
        (table.schema, table.name),
    )
    indexes: dict[str, list[str]] = {}
    partial = {index for index, _, part in rows if part is not None}
    for index, column, _ in rows:
        indexes.setdefault(index, []).append(column)
    # the primary key may index a prefix only: then the whole values are unique all the more
    order = sorted(
        indexes, key=lambda index: (index != "PRIMARY", index in partial, len(indexes[index]), index)
    )
    return next(
        ((index, tuple(indexes[index])) for index in order if set(indexes[index]) <= usable), ("", ())
    )


def key_index(connection: Any, schema: TableSchema) -> str | None:
    """The name of the index that the key comes from."""
    rows = query(
        connection,
        "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s"
        " AND TABLE_NAME = %s AND NON_UNIQUE = 0 AND SUB_PART IS NULL ORDER BY INDEX_NAME <> 'PRIMARY', SEQ_IN_INDEX",
        (schema.id.schema, schema.id.name),
    )
    indexes: dict[str, list[str]] = {}
    for index, column in rows:
        indexes.setdefault(index, []).append(column)
    return next((index for index, columns in indexes.items() if tuple(columns) == schema.key), None)


def references(connection: Any, database: str, known: set[TableId]) -> list[Reference]:
    """The foreign keys between known tables of a database, their columns in order."""
    rows = query(
        connection,
        "SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME"
        " FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s AND REFERENCED_TABLE_SCHEMA = %s"
        " ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION",
        (database, database),
    )
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for table, name, column, parent, parent_column in rows:
        found.setdefault((table, name), []).append((column, parent, parent_column))
    keys = [
        Reference(
            TableId(database, table),
            tuple(column for column, _, _ in ends),
            TableId(database, ends[0][1]),
            tuple(column for _, _, column in ends),
        )
        for (table, _), ends in found.items()
    ]
    return [key for key in keys if {key.child, key.parent} <= known]


class BinlogCatalog(ABC):
    """Structure and readiness of the source. Opens a connection for each call, so it is safe in any thread."""

    def __init__(self, source: BinlogSource):
        self._source = source

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        """Row schemas of the named tables. Raises ``SourceError`` naming those that don't exist or have no key."""
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            found = {
                name: self._read_table(connection, TableId(self._source.server.database, name))
                for name in names
            }
        missing = [name for name, table in found.items() if table is None]
        keyless = [name for name, table in found.items() if table is not None and not table.schema.key]
        for problem, tables in (("don't exist", missing), ("have no key", keyless)):
            if tables:
                raise SourceError(
                    f"source tables {problem}: {', '.join(tables)}",
                    where=self._source.server.address,
                    remedy="check the parameter names of the mapping's functions, or add a primary key",
                )
        return [table.schema for table in found.values() if table is not None]

    def references(self, tables: Sequence[TableSchema]) -> list[Reference]:
        """The foreign keys from one of these tables to another, or to itself."""
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            return references(connection, self._source.server.database, {schema.id for schema in tables})

    @abstractmethod
    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """Everything that stands in the way, all at once. Changes nothing."""

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        """Makes our watermark row where that placement is configured; else nothing. May be repeated."""
        if self._source.placement == "watermark":
            writer = WatermarkRowWriter(self._source)
            try:
                writer.write("prepare", MarkKind.LOW)
            finally:
                writer.close()

    def adopt(self, tables: Sequence[TableId]) -> None:  # noqa: B027 (both engines need nothing)
        """Nothing: the log has every table."""

    def estimated_rows(self, table: TableSchema) -> int:
        """InnoDB's own estimate, without a scan; 0 when it has none."""
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            rows = query(
                connection,
                "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                (table.id.schema, table.id.name),
            )
        return int(rows[0][0] or 0) if rows else 0

    def check_scope(self, table: TableSchema, scope: Scope) -> None:
        """Asks the source whether it can read these rows. Raises ``RequestError`` naming field, value and cause."""
        connection = connect(self._source)
        with named_errors(self._source, "the rows to dump can't be checked"), connection:
            check_scope(connection, table, scope)

    def doubted(self, column: Column, rule: Rule) -> str:
        """SQL that is true of values that may break a rule of a target column; empty where it can't be asked."""
        return condition(column, rule)

    def position(self) -> Position:
        """A place at or after every transaction visible now."""
        connection = connect(self._source)
        with named_errors(self._source, "the position can't be read"), connection:
            return self._log_end(connection)

    # -- the engine's own

    @abstractmethod
    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None: ...

    @abstractmethod
    def _log_end(self, connection: Any) -> Position:
        """A place at or after the log record of every transaction visible now."""
