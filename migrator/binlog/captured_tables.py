"""The captured tables as the log reader knows them: row schema and decoder for each layout that comes by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from migrator.binlog.charsets import Charsets
from migrator.binlog.dialect import Dialect
from migrator.binlog.row_decoder import DecodeRows, build_decoder
from migrator.binlog.table_map import TableMap, parse_table_map, table_of
from migrator.columnar.text_codec import TextCodec
from migrator.errors import SchemaError
from migrator.model.table import Column, TableId, TableSchema

ReadCatalog = Callable[[TableId], "CatalogTable | None"]


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as the catalog has it now.

    Attributes:
        schema: its row schema.
        virtual: the virtual columns, which no row image is taken from.
        key_index: the index that its key comes from.
    """

    schema: TableSchema
    virtual: frozenset[str]
    key_index: str = "PRIMARY"


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A captured table with the layout of its latest TABLE_MAP; ``version`` is the schema's, computed once."""

    schema: TableSchema
    version: str
    codec: TextCodec
    decode: DecodeRows
    columns: int


class CapturedTables:
    """Finds the layout for a TABLE_MAP of a captured table, and None for all others.

    Args:
        tables: the captured tables.
        catalog: what the server's catalog said of them when reading began.
        read_catalog: looks a table up in the server's catalog as it is now, once the log shows a new column.
        charsets: of the server.
        dialect: of the engine.
        fold_case: whether table names compare without case (lower_case_table_names is not 0).
    """

    def __init__(
        self,
        tables: Sequence[TableSchema],
        catalog: Mapping[TableId, CatalogTable],
        read_catalog: ReadCatalog,
        charsets: Charsets,
        dialect: Dialect,
        fold_case: bool,
    ):
        self._fold = fold_case
        self._ids = {self._folded(schema.id): schema.id for schema in tables}
        self._keys = {schema.id: schema.key for schema in tables}
        self._databases = {self._folded(TableId(schema.id.schema, "")).schema for schema in tables}
        self._read_catalog = read_catalog
        self._charsets = charsets
        self._dialect = dialect
        self._catalog = dict(catalog)
        self._key_indexes = {table: found.key_index for table, found in catalog.items()}
        self._layouts: dict[bytes, LoggedTable] = {}

    def captured(self, table: TableId) -> TableId | None:
        """The captured table of that name; for an empty table name, whether the database is ours."""
        folded = self._folded(table)
        if not table.name:
            return table if folded.schema in self._databases else None
        return self._ids.get(folded)

    def names(self) -> tuple[TableId, ...]:
        """The captured tables."""
        return tuple(self._keys)

    def loses_key(self, table: TableId, indexes: Collection[str]) -> bool:
        """Whether the index that a captured table's key comes from is among these, which are gone."""
        return self._key_indexes.get(table, "PRIMARY").lower() in {name.lower() for name in indexes}

    def logged(self, body: bytes) -> LoggedTable | None:
        """The layout of a TABLE_MAP event's table, or None when nobody captures it.

        Raises ``SourceError`` for a column that can't be decoded, ``SchemaError`` when the table has a column that
        the catalog no longer knows.
        """
        _, table = table_of(body)
        known = self.captured(table)
        if known is None:
            return None
        shape = body[6:]  # without the table number, which changes with every opening of the table
        if shape not in self._layouts:
            self._layouts[shape] = self._build(known, parse_table_map(body, self._dialect.character))
        return self._layouts[shape]

    def _build(self, table: TableId, layout: TableMap) -> LoggedTable:
        catalog = self._catalog.get(table)
        if catalog is None or self._unknown(catalog, layout):
            catalog = self._read_catalog(table)
            if catalog is None:
                raise _changed(table, "the table no longer exists")
            self._catalog[table] = catalog
        unknown = self._unknown(catalog, layout)
        if unknown:
            raise _changed(table, f"the catalog no longer has the column {', '.join(unknown)}")
        by_name: dict[str, Column] = {column.name: column for column in catalog.schema.columns}
        declared = [
            by_name[column.name].source_type.lower() if column.name in by_name else None
            for column in layout.columns
        ]
        names = [column.name for column in layout.columns if column.name in by_name]
        key = self._keys[table]
        if not set(key) <= set(names):
            raise _changed(table, f"the log's rows lack a column of the key ({', '.join(key)})")
        schema = TableSchema(table, tuple(by_name[name] for name in names), key)
        return LoggedTable(
            schema,
            schema.version(),
            TextCodec(schema),
            build_decoder(layout.columns, declared, self._charsets, self._dialect),
            len(layout.columns),
        )

    @staticmethod
    def _unknown(catalog: CatalogTable, layout: TableMap) -> list[str]:
        known = {column.name for column in catalog.schema.columns} | catalog.virtual
        return [column.name for column in layout.columns if column.name not in known]

    def _folded(self, table: TableId) -> TableId:
        return TableId(table.schema.lower(), table.name.lower()) if self._fold else table


def _changed(table: TableId, cause: str) -> SchemaError:
    return SchemaError(
        "a captured table was changed in a way that can't be carried on",
        where=str(table),
        cause=cause,
        remedy="undo the change, or adapt the mapping and start a new dump of the table",
    )
