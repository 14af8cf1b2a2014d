"""Tables of a MySQL or MariaDB source, read together: see ``verify.readers.ports.SourceTables``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from verify.readers.chunk_keys import Key
from verify.readers.mysql.chunks import DIALECT, VIEW, counted, nth_key
from verify.readers.mysql.session import quoted, rows_of
from verify.readers.ports import Bracket, Part
from verify.readers.snapshot import LogPlace

_REFERENCES = """
SELECT constraint_name, table_name, column_name, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = %s AND referenced_table_schema = table_schema
ORDER BY table_name, constraint_name, ordinal_position
"""
_INDEXES = """
SELECT index_name, CASE WHEN sub_part IS NULL THEN column_name END FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s ORDER BY index_name, seq_in_index
"""
Read = Callable[[Any, TableSchema, Path, str], int]
"""Reads the rows of a table under a condition into a Parquet file; gives their number."""


class MySQLSourceTables:
    """See the port. ``places`` is a session outside all views, ``around`` asks it before and after a view
    begins."""

    dialect = DIALECT

    def __init__(
        self,
        session: Any,
        places: Any,
        around: tuple[Callable[[Any], LogPlace], Callable[[Any], LogPlace]],
        schemas: Mapping[str, TableSchema],
        read: Read,
    ):
        self._session, self._places, self._around = session, places, around
        self._schemas, self._read = schemas, read

    @property
    def schemas(self) -> Mapping[str, TableSchema]:
        """The tables by name, as they were when reading began."""
        return self._schemas

    def count(self, table: str, upto: int, where: str = "1 = 1") -> int:
        """See the port."""
        return counted(self._session, self._name(table), upto, where)

    def end(self, table: str, key: Sequence[tuple[str, str]], where: str, rows: int) -> Key | None:
        """See the port."""
        return nth_key(self._session, self._name(table), key, where, rows)

    def read(self, parts: Sequence[Part]) -> tuple[Bracket, int]:
        """See the port."""
        before, after = self._around
        low = before(self._places)
        rows_of(self._session, VIEW)
        high = after(self._places)
        rows = sum(
            self._read(self._session, self._schemas[part.table], part.path, part.where) for part in parts
        )
        rows_of(self._session, "ROLLBACK")
        return Bracket(low, high), rows

    def references(self) -> list[Reference]:
        """See the port."""
        names = {schema.id.name: schema.id for schema in self._schemas.values()}
        space = next(iter(names.values())).schema
        found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for constraint, child, column, parent, parent_column in rows_of(self._session, _REFERENCES, (space,)):
            if child in names and parent in names:
                found.setdefault((child, constraint), []).append((column, parent, parent_column))
        return [
            Reference(
                names[child],
                tuple(column for column, _, _ in pairs),
                names[pairs[0][1]],
                tuple(column for _, _, column in pairs),
            )
            for (child, _), pairs in found.items()
        ]

    def has_index(self, table: str, columns: Sequence[str]) -> bool:
        """See the port."""
        own = self._schemas[table].id
        found: dict[str, list[str]] = {}
        for index, column in rows_of(self._session, _INDEXES, (own.schema, own.name)):
            found.setdefault(index, []).append(str(column))
        return any(sorted(names[: len(columns)]) == sorted(columns) for names in found.values())

    def _name(self, table: str) -> str:
        own = self._schemas[table].id
        return f"{quoted(own.schema)}.{quoted(own.name)}"
