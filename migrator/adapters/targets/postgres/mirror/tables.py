"""The tables of the mirror: one per source table that joined targets read, in a schema of their own.

Values are held exactly, not prettily: text as its UTF-8 bytes (U+0000 is none of PostgreSQL's characters, and its
database may have a smaller character set), dates as days and timestamps as microseconds since 1970 (as the
event log holds them, infinities too), everything else in the type of the same name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import pyarrow as pa

from migrator.adapters.targets.postgres.mirror.keys import indexed, of_bytes
from migrator.adapters.targets.postgres.refusal import Refusal
from migrator.adapters.targets.postgres.rows.merge import columns as quoted_columns
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.mirror.columns import (
    COMMENT,
    FORMAT,
    needed,
    out_of_step,
    outdated,
    refuse_another_key,
    refuse_late,
    refuse_newer,
    renamed,
    too_wide,
    wrong_columns,
)
from migrator.columnar.types import arrow_type
from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from migrator.model.reach import VALUE, Reach, linked_columns
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.mirror import JoinedTarget

SCHEMA = "migrator_mirror"
FILLED = f"{SCHEMA}.filled"
FILLING = f"{SCHEMA}.filling"
NUMBER = '"~number"'
_NAME_BYTES = 63
_FILL = 85
"""Room in each page for new versions of its rows: where no linked column changes, indexes needn't be written."""
_TYPES = {
    "bool": "boolean", "int8": "smallint", "int16": "smallint", "int32": "integer", "int64": "bigint",
    "float32": "real", "float64": "double precision", "string": "bytea", "binary": "bytea",
    "date": "integer", "timestamp": "bigint", "timestamptz": "bigint",
}  # fmt: skip
_HELD = {
    "int8": pa.int16(), "string": pa.binary(), "date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64(),
}  # fmt: skip
_MAKE_FILLED = (
    f"CREATE TABLE IF NOT EXISTS {FILLED} (migration text, target text, digest text NOT NULL,"
    " segment bigint NOT NULL, PRIMARY KEY (migration, target))"
)
_MAKE_FILLING = (
    f"CREATE TABLE IF NOT EXISTS {FILLING} (migration text, target text, digest text NOT NULL,"
    " reach smallint NOT NULL, number bigint, pieces bigint NOT NULL, covered_rows bigint NOT NULL,"
    " of_rows bigint NOT NULL, PRIMARY KEY (migration, target))"
)
_COLUMNS = (
    "SELECT attname::text, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = pg_catalog.to_regclass($1::text) AND attnum > 0 AND NOT attisdropped"
)
_PRIMARY = (
    "SELECT conname::text FROM pg_catalog.pg_constraint"
    " WHERE conrelid = pg_catalog.to_regclass($1::text) AND contype = 'p'"
)
_MOST_COLUMNS = 1500  # of 1,600: computed values come on top
_MOST_WIDTH = 7000  # of some 8,100 bytes
_MOVED_OUT = 20
_WIDTHS = {"bool": 1, "int8": 2, "int16": 2, "int32": 4, "float32": 4, "date": 4, "int64": 8, "float64": 8,
           "timestamp": 8, "timestamptz": 8}  # fmt: skip
TOO_WIDE = frozenset({"54011", "54001", "54000"})
_LEFT = (
    "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1::text"
    " AND pg_catalog.starts_with(tablename::text, $2::text)"
)


def mirror_table(migration: str, table: TableId) -> TableId:
    """Names the table that mirrors a source table."""
    return TableId(SCHEMA, _fitting(f"{migration}.{table.name}"))


def number_table(migration: str, reach: Reach) -> TableId:
    """Names the table that keeps a computed grain's values: the key of the grain's table, and ``number``."""
    return TableId(SCHEMA, _fitting(f"{migration}.{reach.name}"))


def sql_type(column: Column) -> str:
    """The type in which a mirrored column is held."""
    decimal = column.decimal()
    return f"numeric({decimal[0]},{decimal[1]})" if decimal else _TYPES[column.type]


def held(rows: pa.Table, schema: TableSchema, names: Sequence[str]) -> pa.Table:
    """Source rows in the form in which the mirror holds them; a column they lack is NULL."""
    found = []
    for name in names:
        column = _column(schema, name)
        if name not in rows.column_names:
            found.append(
                pa.chunked_array([pa.nulls(rows.num_rows, _HELD.get(column.type, arrow_type(column)))])
            )
            continue
        values = rows[name].cast(arrow_type(column))
        wanted = _HELD.get(column.type)
        found.append(values if wanted is None else values.cast(wanted))
    return pa.table(found, names=list(names))


def restored(rows: pa.Table, schema: TableSchema, names: Sequence[str]) -> pa.Table:
    """Mirrored rows (columns ``names``, by place) as source rows."""
    found = []
    for place, name in enumerate(names):
        column = _column(schema, name)
        values = rows.column(place)
        if isinstance(values.type, pa.BaseExtensionType):  # how the driver gives numeric: as text
            values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
        if column.type in _HELD and values.type != _HELD[column.type]:
            values = values.cast(_HELD[column.type])
        found.append(values.cast(arrow_type(column)))
    return pa.table(found, names=list(names))


def numbers_itself(schema: TableSchema, grain: Sequence[str]) -> bool:
    """Tells whether a grain's value is its number: a whole number, never NULL, by which the key's index finds rows.

    Such grains lie in the mirror side by side, and no other index has to be kept.
    """
    return (
        len(grain) == 1
        and grain[0] == schema.key[0]
        and _column(schema, grain[0]).type in ("int8", "int16", "int32", "int64")
    )


def number_of(schema: TableSchema, grain: Sequence[str], expressions: Iterable[str], shared: bool) -> str:
    """SQL of a grain's number, from those of its columns: equal values have equal numbers, NULLs included.

    Different values may share one: then more grains are looked at than were touched, which changes nothing.
    Where tables share the grain, all have the number that is computed: of one it may be the key, of others not.
    """
    if not shared and numbers_itself(schema, grain):
        (value,) = expressions
        return value
    return _hashed(expressions)


def _hashed(expressions: Iterable[str]) -> str:
    return f"pg_catalog.hash_record_extended(ROW({', '.join(expressions)}), 0)"


def prepare(
    session: Session, migration: str, targets: Sequence[JoinedTarget], ledger: Ledger
) -> dict[TableId, tuple[str, ...]]:
    """Makes schema, tables and indexes that are missing; returns per source table the columns its mirror has.

    Raises ``TargetError``: the role may not, a table was dumped before it was mirrored, a column is missing, or a
    table has more columns than the server takes.
    """
    try:
        if not session.one("SELECT pg_catalog.to_regnamespace($1::text) IS NOT NULL", [SCHEMA])[0]:
            session.run(f"CREATE SCHEMA {SCHEMA}")
        _check_format(session)
        if ledger.segment == 0:
            _forget(session, migration)
        schemas = {schema.id: schema for target in targets for schema in target.sources.values()}
        found = {}
        for schema in schemas.values():
            found[schema.id] = _table(session, migration, schema, targets, ledger)
        _indexes(session, migration, targets)
    except Refusal as refusal:
        if refusal.retryable():
            raise
        if refusal.sqlstate in TOO_WIDE:
            raise too_wide(f"schema {SCHEMA}", refusal.cause()) from None
        raise TargetError(
            "the mirror of the source's tables can't be made beside the target",
            where=f"schema {SCHEMA}",
            cause=refusal.cause(),
            remedy=f"as the database's owner: CREATE SCHEMA {SCHEMA} AUTHORIZATION <the role that migrator uses>",
        ) from None
    return found


def _forget(session: Session, migration: str) -> None:
    """Drops what a migration of this name left before it was started anew: rows that vanished since would stay."""
    for (name,) in session.rows(_LEFT, [SCHEMA, f"{migration}."]):
        session.run(f"DROP TABLE {qualified(TableId(SCHEMA, name))}")
    for kept in (FILLED, FILLING):
        session.run(f"DELETE FROM {kept} WHERE migration = $1::text", [migration])


def _check_format(session: Session) -> None:
    """Numbers the mirror, refuses a newer one. What an older one has is brought up to date table by table."""
    for kept, make in ((FILLED, _MAKE_FILLED), (FILLING, _MAKE_FILLING)):
        if not session.one("SELECT pg_catalog.to_regclass($1::text) IS NOT NULL", [kept])[0]:
            session.run(make)
    (comment,) = session.one("SELECT pg_catalog.obj_description($1::text::regclass, 'pg_class')", [FILLED])
    refuse_newer(comment, f"schema {SCHEMA}")
    if comment != f"{COMMENT}{FORMAT}":
        session.run(f"COMMENT ON TABLE {FILLED} IS '{COMMENT}{FORMAT}'")


def _table(
    session: Session, migration: str, schema: TableSchema, targets: Sequence[JoinedTarget], ledger: Ledger
) -> tuple[str, ...]:
    place = mirror_table(migration, schema.id)
    name = qualified(place)
    present = _present(session, place)
    if present and out_of_step(schema, ledger):
        session.run(f"DROP TABLE {name}")
        present = {}
    if not present:
        refuse_late(schema, ledger, name)
        wide = len(schema.columns) > _MOST_COLUMNS or sum(map(_width, schema.columns)) > _MOST_WIDTH
        columns = needed(schema, targets) if wide else schema.names()
        _make(session, place, schema, columns, options=f" WITH (fillfactor = {_FILL})")
        return columns
    refuse_another_key(schema, ledger, name)
    _bring_up_to_date(session, place, schema, present)
    for column in schema.columns:  # values of a newer mapping: filling its target computes them
        if column.name.startswith(VALUE) and column.name not in present:
            session.run(f"ALTER TABLE {name} ADD COLUMN {quoted(column.name)} {sql_type(column)}")
    present, wanted = _present(session, place), {column.name: sql_type(column) for column in schema.columns}
    needed_now = needed(schema, targets)
    for old, new in renamed(schema, ledger, present, wanted, needed_now):
        session.run(f"ALTER TABLE {name} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
        present[new] = present.pop(old)
    for gone in outdated(present, wanted, needed_now):
        session.run(f"ALTER TABLE {name} DROP COLUMN {quoted(gone)}")
        del present[gone]
    kept = tuple(column for column in schema.names() if column in present)
    read = {column for target in targets for column in target.columns.get(schema.id.name, ())}
    wrong_columns(schema, name, wanted, present, read)
    return kept


def _present(session: Session, place: TableId) -> dict[str, str]:
    return dict(session.rows(_COLUMNS, [qualified(place)]))


def _make(
    session: Session,
    place: TableId,
    schema: TableSchema,
    names: Sequence[str],
    more: str = "",
    options: str = "",
) -> None:
    """Makes a table of these columns with the source table's key."""
    columns = [_column(schema, name) for name in names]
    body = ", ".join(
        f"{quoted(one.name)} {sql_type(one)}{' NOT NULL' if one.name in schema.key else ''}"
        for one in columns
    )
    by_bytes = of_bytes(schema) & set(schema.key)
    key = "" if by_bytes else f", PRIMARY KEY ({quoted_columns(schema.key)})"
    session.run(f"CREATE TABLE {qualified(place)} ({body}{more}{key}){options}")
    if by_bytes:
        _index(session, place, _indexed(schema, schema.key), "UNIQUE ")


def _bring_up_to_date(session: Session, place: TableId, schema: TableSchema, present: dict[str, str]) -> None:
    """Converts a table of the first format: its texts become bytes, and a key of bytes is found by its short form."""
    held, name = of_bytes(schema), qualified(place)
    if held & set(schema.key):
        for (constraint,) in session.rows(_PRIMARY, [name]):
            session.run(f"ALTER TABLE {name} DROP CONSTRAINT {quoted(str(constraint))}")
    texts = [quoted(column) for column in schema.names() if column in held and present.get(column) == "text"]
    if texts:
        changes = [f"ALTER {one} TYPE bytea USING pg_catalog.convert_to({one}, 'UTF8')" for one in texts]
        session.run(f"ALTER TABLE {name} {', '.join(changes)}")
    if held & set(schema.key):
        _index(session, place, _indexed(schema, schema.key), "UNIQUE ")


def _indexes(session: Session, migration: str, targets: Sequence[JoinedTarget]) -> None:
    reaches = tuple(reach for target in targets for reach in target.reaches)
    schemas = {node.schema.id: node.schema for reach in reaches for node in reach.nodes}
    for table, linked in linked_columns(reaches).items():
        schema, place = schemas[table], mirror_table(migration, table)
        for names in sorted(linked):
            if schema.key[: len(names)] == names:
                continue
            if of_bytes(schema) & set(names):  # an older mirror has one of whole values
                session.run(f"DROP INDEX IF EXISTS {SCHEMA}.{_index_name(place, quoted_columns(names))}")
            _index(session, place, _indexed(schema, names))
    _grain_indexes(session, migration, [reach for reach in reaches if reach.grain])
    for reach in reaches:
        if reach.grain:
            continue
        root = reach.root.schema
        name = number_table(migration, reach)
        if present := _present(session, name):
            _bring_up_to_date(session, name, root, present)
        else:
            _make(session, name, root, root.key, f", {NUMBER} bigint NOT NULL")
        _index(session, name, NUMBER)


def _grain_indexes(session: Session, migration: str, reaches: Sequence[Reach]) -> None:
    """Makes the indexes by the numbers of grains of columns, and drops those that nobody needs any more."""
    wanted, unwanted = dict[str, tuple[TableId, str]](), dict[str, TableId]()
    for reach in reaches:
        for index in reach.roots():
            schema, grain = reach.nodes[index].schema, reach.grain_of(index)
            table = mirror_table(migration, schema.id)
            hashed = f"({_hashed(quoted(name) for name in grain)})"
            if reach.shared or not numbers_itself(schema, grain):
                wanted[_index_name(table, hashed)] = (table, hashed)
            else:  # an older mirror has it
                unwanted[_index_name(table, hashed)] = table
    for table, hashed in wanted.values():
        _index(session, table, hashed)
    for name in unwanted.keys() - wanted.keys():
        session.run(f"DROP INDEX IF EXISTS {SCHEMA}.{name}")


def _indexed(schema: TableSchema, names: Sequence[str]) -> str:
    return ", ".join(indexed(schema, names, list(map(quoted, names))))


def _index(session: Session, table: TableId, expression: str, kind: str = "") -> None:
    name = _index_name(table, f"{kind}{expression}")
    session.run(f"CREATE {kind}INDEX IF NOT EXISTS {name} ON {qualified(table)} ({expression})")


def _index_name(table: TableId, expression: str) -> str:
    return f"m_{hashlib.sha256(f'{table.name} {expression}'.encode()).hexdigest()[:24]}"


def _width(column: Column) -> int:
    """Bytes of a page that a value takes at most: long ones are moved out of it."""
    return _WIDTHS.get(column.type, _MOVED_OUT)


def _column(schema: TableSchema, name: str) -> Column:
    return next(column for column in schema.columns if column.name == name)


def _fitting(name: str) -> str:
    """A name that PostgreSQL doesn't cut."""
    if len(name.encode()) <= _NAME_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name.encode()[: _NAME_BYTES - 13].decode(errors='ignore')}~{digest}"
