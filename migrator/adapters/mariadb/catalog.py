"""The structure of a MariaDB source, from information_schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from migrator.adapters.mariadb.captured_tables import CatalogTable
from migrator.adapters.mariadb.position import LogPlace, parse_gtids
from migrator.adapters.mariadb.settings import MariaSource, connect, named_errors
from migrator.errors import SourceError
from migrator.model.event import MarkKind
from migrator.model.finding import Finding
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema

_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
_TIMES = ("date", "time", "datetime", "timestamp")
_GEOMETRY = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", *_GEOMETRY)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38


def logical_type(data_type: str, column_type: str) -> str | None:
    """The logical type of a MariaDB type; None when we can't read it from the log (uuid, inet6, vector, ...)."""
    if "compressed" in column_type or "/* mariadb-5.3 */" in column_type:
        return None
    unsigned = "unsigned" in column_type
    if data_type in _INTEGERS:
        bits = _INTEGERS[data_type]
        if not unsigned:
            return f"int{bits}"
        if data_type == "mediumint":
            return "int32"
        return "decimal(20,0)" if bits == 64 else f"int{bits * 2}"
    found = _DECIMAL.match(column_type)
    if data_type == "decimal" and found:
        return f"decimal({found[1]},{found[2]})" if int(found[1]) <= _MOST_DIGITS else "string"
    if data_type == "year":
        return None if column_type == "year(2)" else "int16"
    if data_type in ("float", "double"):
        return "float32" if data_type == "float" else "float64"
    if data_type in _TEXT or data_type in _TIMES:
        return "string"
    return "binary" if data_type in _BINARY else None


def quote(name: str) -> str:
    """An identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(table: TableId) -> str:
    """A table's full name, quoted."""
    return f"{quote(table.schema)}.{quote(table.name)}"


def query(connection: Any, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """All rows of one query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(parameters) or None)
        return list(cursor.fetchall())


def read_table(connection: Any, table: TableId) -> CatalogTable | None:
    """A table as the catalog has it now, or None when there is no base table of that name.

    Columns come in the order of declaration. Stored generated and invisible columns are columns like others (the log
    has them); virtual ones are left out: they can be computed from the rest. The key is the primary key, else the
    first unique index over not-null columns; it is empty when there is none. Raises ``SourceError`` for a column type
    that can't be read.
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
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME, EXTRA"
        " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (table.schema, table.name),
    )
    virtual = frozenset(row[0] for row in rows if "VIRTUAL GENERATED" in row[5].upper())
    columns = tuple(_column(table, row) for row in rows if row[0] not in virtual)
    usable = {column.name for column in columns if not column.nullable}
    return CatalogTable(TableSchema(table, columns, _key(connection, table, usable)), virtual)


def _column(table: TableId, row: tuple[Any, ...]) -> Column:
    name, data_type, column_type, nullable, collation, _ = row
    logical = logical_type(data_type.lower(), column_type.lower())
    if logical is None:
        raise SourceError(
            f"column {table}.{name} has a type that can't be read from the log",
            where=str(column_type),
            remedy="change the column's type, or leave the table out of the migration",
        )
    return Column(name, logical, nullable == "YES", column_type, collation or "")


def _key(connection: Any, table: TableId, usable: set[str]) -> tuple[str, ...]:
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
    return next((tuple(indexes[index]) for index in order if set(indexes[index]) <= usable), ())


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


def log_end(connection: Any) -> Position:
    """The end of the log: at or after every transaction visible now."""
    ((gtids,),) = query(connection, "SELECT @@GLOBAL.gtid_binlog_pos")
    return LogPlace(parse_gtids(gtids), "", 0).position()


def visible_end(connection: Any) -> Position:
    """The newest place of which everything before is visible: where a first start begins.

    The log's end would be wrong there. A commit stands in the log before readers see it (group commit, semi-sync
    AFTER_SYNC). Beginning behind such a commit, the log reader never delivers it, and a chunk read before it becomes
    visible doesn't hold it either: it would be lost. A consistent snapshot says where it stands in the log.

    Raises ``SourceError`` when the server doesn't say.
    """
    # only under REPEATABLE READ is the snapshot taken at once
    query(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    status = dict(query(connection, "SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
    place = {name.lower(): value for name, value in status.items()}
    query(connection, "COMMIT")
    file, offset = place.get("binlog_snapshot_file") or "", int(place.get("binlog_snapshot_position") or 0)
    ((gtids,),) = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
    if gtids is None:
        raise SourceError(
            "the server doesn't say where its snapshot stands in the log",
            where=f"binlog_snapshot_file {file!r}, binlog_snapshot_position {offset}",
            cause="BINLOG_GTID_POS knows no GTID state there",
            remedy="turn the binary log on (log_bin); if it is on, start again: the file may just have been purged",
        )
    return LogPlace(parse_gtids(gtids), "", 0).position()


class MariaCatalog:
    """Structure and readiness of the source. Opens a connection for each call, so it is safe in any thread."""

    def __init__(self, source: MariaSource):
        self._source = source

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        """Row schemas of the named tables. Raises ``SourceError`` naming those that don't exist or have no key."""
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            found = {name: read_table(connection, TableId(self._source.database, name)) for name in names}
        missing = [name for name, table in found.items() if table is None]
        keyless = [name for name, table in found.items() if table is not None and not table.schema.key]
        for problem, tables in (("don't exist", missing), ("have no key", keyless)):
            if tables:
                raise SourceError(
                    f"source tables {problem}: {', '.join(tables)}",
                    where=self._source.where,
                    remedy="check the parameter names of the mapping's functions, or add a primary key",
                )
        return [table.schema for table in found.values() if table is not None]

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """Everything that stands in the way, all at once. Changes nothing."""
        from migrator.adapters.mariadb.preflight import preflight

        return preflight(self._source, tables)

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        """Makes our watermark row where that placement is configured; else nothing. May be repeated."""
        from migrator.adapters.mariadb.watermark import MariaWatermarkWriter

        if self._source.placement == "watermark":
            writer = MariaWatermarkWriter(self._source)
            try:
                writer.write("prepare", MarkKind.LOW)
            finally:
                writer.close()

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

    def position(self) -> Position:
        """A place at or after every transaction visible now."""
        connection = connect(self._source)
        with named_errors(self._source, "the position can't be read"), connection:
            return log_end(connection)
