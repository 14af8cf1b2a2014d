"""Rows of the living source for an incident: whole small tables, of large ones only rows that are concerned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from migrator.model.reach import Reference
from migrator.model.table import Column, TableSchema
from scenarios.chaos.incident import event_log
from scenarios.chaos.incident.history import Cell, Identity, Row
from verify.readers.chunk_keys import BYTES, INTEGER, TEXT, UUID, condition, lists_of
from verify.readers.engines import JUDGED, source_reader
from verify.readers.ports import Part, SourceTables
from verify.settings import ServerSettings

_KEYS_EACH = 200


@dataclass(frozen=True)
class Present:
    """The tables as they are now.

    Attributes:
        schemas: by name.
        references: foreign keys between them.
        rows: by table.
        left: what wasn't read, in words.
    """

    schemas: Mapping[str, TableSchema]
    references: Sequence[Reference]
    rows: Mapping[str, Sequence[Row]]
    left: Sequence[str]


def read(
    settings: ServerSettings,
    migration: str,
    tables: Sequence[str],
    concerned: Callable[[Mapping[str, TableSchema]], Sequence[Identity]],
    most: int,
    folder: Path,
) -> Present:
    """Reads tables.

    Args:
        settings: of the source.
        migration: its name.
        tables: names.
        concerned: says which rows are wanted of tables with more rows than ``most``, with their neighbours by
            foreign keys; takes the tables.
        most: rows of a table that are read as a whole.
        folder: for files.

    Raises ``MigratorError`` where the source can't be read.
    """
    kind = settings.server.kind
    with source_reader(settings, migration).tables(list(tables)) as found:
        references = [
            one for one in found.references() if one.child.name in tables and one.parent.name in tables
        ]
        wanted = list(concerned(found.schemas))
        small = [name for name in tables if found.count(name, most + 1) <= most]
        places = (folder / f"{number}.parquet" for number in count())
        parts = [Part(name, "1 = 1", next(places)) for name in small]
        large = [name for name in tables if name not in small]
        rows = _read(found, parts, kind)
        for _ in range(2 if large else 0):  # first what is concerned, then whatever shares a parent with it
            parts = [
                Part(name, where, next(places))
                for name in large
                for where in _conditions(found, name, references, wanted, kind)
                if found.count(name, most + 1, where) <= most  # a parent may have any number of children
            ]
            for name, more in _read(found, parts, kind).items():
                rows[name] |= more
            wanted = [*wanted, *_parents(found, references, rows)]
        schemas = dict(found.schemas)
    left = [
        f"{name}: it has more than {most:,} rows; of these, {len(rows[name])} were read: those that the failure or"
        " --keys name, and neighbours"
        for name in large
    ]
    return Present(schemas, references, {name: list(of.values()) for name, of in rows.items()}, left)


def _read(found: SourceTables, parts: Sequence[Part], kind: str) -> dict[str, dict[tuple[Cell, ...], Row]]:
    rows: dict[str, dict[tuple[Cell, ...], Row]] = {name: {} for name in found.schemas}
    if parts:
        found.read(parts)
    for part in parts:
        with suppress(FileNotFoundError):  # a piece without rows may leave no file
            for row in event_log.of_file(part.path, kind):
                rows[part.table][tuple(row.get(name) for name in found.schemas[part.table].key)] = row
    return rows


def _parents(
    found: SourceTables,
    references: Sequence[Reference],
    rows: Mapping[str, Mapping[tuple[Cell, ...], Row]],
) -> list[Identity]:
    """Rows that rows of large tables name by the key of another table."""
    return list(
        dict.fromkeys(
            (one.parent.name, tuple(row.get(name) for name in one.columns))
            for one in references
            if one.parent_columns == found.schemas[one.parent.name].key
            for row in rows[one.child.name].values()
        )
    )


def _conditions(
    found: SourceTables,
    table: str,
    references: Sequence[Reference],
    concerned: Sequence[Identity],
    engine: str,
) -> list[str]:
    """Conditions that find the rows of a table that are concerned, and those that name them."""
    schema = found.schemas[table]
    wanted = [(schema.key, [key for name, key in concerned if name == table])]
    for one in references:
        if one.child.name == table and one.parent_columns == found.schemas[one.parent.name].key:
            wanted.append((one.columns, [key for name, key in concerned if name == one.parent.name]))
    result = []
    for columns, keys in wanted:
        kinds = [
            _kind(column, engine) for name in columns for column in schema.columns if column.name == name
        ]
        texts = [tuple(map(_text, key)) for key in keys if None not in key]
        if texts and None not in kinds:
            known = [one for one in kinds if one is not None]
            result += [condition(one, columns, known, found.dialect) for one in lists_of(texts, _KEYS_EACH)]
    return result


def _kind(column: Column, engine: str) -> str | None:
    if column.type.startswith("int") or (column.decimal() or (0, 1))[1] == 0:
        return INTEGER
    if column.type == "binary":
        return BYTES
    kind = JUDGED[engine].keys[0](column)
    return kind if kind in (TEXT, UUID) else None


def _text(value: Cell) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
