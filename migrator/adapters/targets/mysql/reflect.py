"""Target tables as information_schema describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql

from migrator.adapters.targets.mysql.refusal import explained, not_reached
from migrator.adapters.targets.mysql.session import connected
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Storage, Structure
from migrator.adapters.targets.mysql.types import Declared, storage_of
from migrator.adapters.targets.shared.refused import ConnectionLost, refused_query
from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.model.table import TableId
from migrator.model.target import TargetTable

_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND table_name IN %s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""
_COLUMNS = """
SELECT table_name, column_name, data_type, column_type, is_nullable = 'YES',
       column_default IS NOT NULL OR extra LIKE '%%auto_increment%%' OR extra LIKE '%%DEFAULT_GENERATED%%',
       COALESCE(generation_expression, '') <> '',
       numeric_precision, numeric_scale, datetime_precision, character_set_name, collation_name,
       character_octet_length
FROM information_schema.columns WHERE table_schema = %s AND table_name IN %s ORDER BY table_name, ordinal_position
"""
# A column that isn't named is an expression's.
_INDEXES = """
SELECT table_name, index_name, column_name, sub_part IS NOT NULL, nullable = 'YES'
FROM information_schema.statistics WHERE table_schema = %s AND table_name IN %s AND non_unique = 0
ORDER BY table_name, index_name = 'PRIMARY' DESC, index_name, seq_in_index
"""
_FOREIGN_KEYS = """
SELECT k.constraint_name, k.table_schema, k.table_name, k.column_name,
       k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name
FROM information_schema.key_column_usage k
WHERE k.referenced_table_name IS NOT NULL AND ((k.table_schema = %s AND k.table_name IN %s)
   OR (k.referenced_table_schema = %s AND k.referenced_table_name IN %s))
ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position
"""
DRIVER_ERRORS = (pymysql.err.MySQLError, OSError)


class Catalog:
    """A short session for catalog queries."""

    def __init__(self, connection: Any):
        self._connection = connection

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Runs one statement; returns how many rows it changed. Raises the driver's errors."""
        with self._connection.cursor() as cursor:
            return int(cursor.execute(statement, tuple(parameters) or None))

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one query. Raises the driver's errors."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(parameters) or None)
            return [tuple(row) for row in cursor.fetchall()]


@contextmanager
def catalog(settings: MysqlTarget) -> Iterator[Catalog]:
    """A catalog session. Raises ``ConnectionFailed``, also when the connection is lost, and ``TargetError``."""
    try:
        connection = connected(settings)
    except (*DRIVER_ERRORS, RuntimeError, ValueError) as error:
        raise not_reached(settings, error) from None
    try:
        yield Catalog(connection)
    except DRIVER_ERRORS as error:
        found = explained(error)
        if isinstance(found, ConnectionLost):
            raise not_reached(settings, error) from None
        remedy = "grant the migration's user what is missing (docs/how-to/grants-mysql.md)"
        raise refused_query(settings.server.address, found, remedy) from None
    finally:
        connection.close()


def reflect(catalog: Catalog, database: str, names: Sequence[str]) -> dict[TableId, Structure]:
    """Structures of the named tables that exist, in the order of ``names``."""
    if not names:
        return {}
    place = [database, list(names)]
    existing = {row[0] for row in catalog.rows(_TABLES, place)}
    columns: dict[str, list[Storage]] = {name: [] for name in existing}
    for row in catalog.rows(_COLUMNS, place):
        if row[0] in columns:
            columns[row[0]].append(_storage(row[1:]))
    indexes: dict[str, list[tuple[Any, ...]]] = {name: [] for name in existing}
    for table, *index in catalog.rows(_INDEXES, place):
        if table in indexes:
            indexes[table].append(tuple(index))
    foreign_keys = _foreign_keys(catalog.rows(_FOREIGN_KEYS, [*place, *place]))
    return {
        TableId(database, name): _structure(
            TableId(database, name), tuple(columns[name]), indexes[name], foreign_keys
        )
        for name in dict.fromkeys(names)
        if name in existing
    }


def _storage(row: Sequence[Any]) -> Storage:
    name, base, kind, nullable, default, generated, precision, scale, fraction, charset, collation, length = (
        row
    )
    return storage_of(
        Declared(
            name=str(name),
            data_type=_word(base),
            column_type=_word(kind),
            nullable=bool(nullable),
            has_default=bool(default),
            generated=bool(generated),
            precision=precision,
            scale=scale,
            fraction=fraction,
            character_set=charset,
            collation=collation,
            length=length,
        )
    )


def _word(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def _structure(
    table: TableId,
    storage: tuple[Storage, ...],
    parts: Sequence[tuple[Any, ...]],
    foreign_keys: Sequence[ForeignKey],
) -> Structure:
    indexes: dict[str, list[tuple[Any, ...]]] = {}
    for name, *part in parts:
        indexes.setdefault(str(name), []).append(tuple(part))
    usable = [
        name
        for name, found in indexes.items()
        if all(column is not None and not cut and not nullable for column, cut, nullable in found)
    ]
    chosen = min(usable, key=lambda name: (name != "PRIMARY", len(indexes[name]), name), default="")
    key = tuple(str(column) for column, _, _ in indexes.get(chosen, ()))
    others = [part for name, found in indexes.items() if name != chosen for part in found]
    outgoing = tuple(one for one in foreign_keys if one.child == table)
    return Structure(
        table=TargetTable(
            id=table,
            columns=tuple(one.column for one in storage),
            key=key,
            references=tuple(dict.fromkeys(one.parent for one in outgoing)),
        ),
        storage=storage,
        outgoing=outgoing,
        incoming=tuple(one for one in foreign_keys if one.parent == table),
        indexes=tuple(
            (name, tuple(str(column) for column, _, _ in found if column is not None))
            for name, found in indexes.items()
        ),
        exclusive=_exclusive(storage, [column for column, _, _ in others]),
    )


def _exclusive(storage: tuple[Storage, ...], columns: Sequence[str | None]) -> frozenset[str]:
    """Columns of the other unique indexes; all of the table's where what one depends on isn't known."""
    generated = {one.column.name for one in storage if one.column.generated}
    if any(column is None or column in generated for column in columns):
        return frozenset(one.column.name for one in storage)
    return frozenset(str(column) for column in columns)


def _foreign_keys(rows: Sequence[tuple[Any, ...]]) -> list[ForeignKey]:
    grouped: dict[tuple[str, TableId, TableId], list[tuple[str, str]]] = {}
    for name, child_schema, child, column, parent_schema, parent, referenced in rows:
        place = (name, TableId(child_schema, child), TableId(parent_schema, parent))
        grouped.setdefault(place, []).append((column, referenced))
    return [
        ForeignKey(
            name=name,
            child=child,
            child_columns=tuple(column for column, _ in pairs),
            parent=parent,
            parent_columns=tuple(referenced for _, referenced in pairs),
        )
        for (name, child, parent), pairs in grouped.items()
    ]
