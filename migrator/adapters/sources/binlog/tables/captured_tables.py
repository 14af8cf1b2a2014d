"""The captured tables as the log reader knows them: row schema and decoder for each layout that comes by."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from migrator.adapters.sources.binlog.events.table_map import (
    LoggedColumn,
    TableMap,
    parse_table_map,
    table_of,
)
from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.row_codec import RowCodec
from migrator.adapters.sources.binlog.rows.row_forms import RowForm, forms_of
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind
from migrator.adapters.sources.binlog.tables.agreement import agrees
from migrator.adapters.sources.binlog.tables.identity import FormerTables, replaced_by
from migrator.adapters.sources.binlog.tables.later_names import (
    LookAhead,
    Renaming,
    Renamings,
    last_name,
    needed_later,
)
from migrator.adapters.sources.replaced import all_rows_read
from migrator.errors import ReplacedError, SchemaError
from migrator.model.table import Column, TableId, TableSchema

_NOT_SEEN = object()
_MOST_LAYOUTS = 10_000
"""Kept, of tables that nobody captures, too; a server may have any number of them."""

ReadCatalog = Callable[[TableId], "CatalogTable | None"]


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as the catalog has it now.

    Attributes:
        schema: its row schema.
        unlogged: the generated columns that row images may lack: nothing is taken from there.
        key_index: the index that its key comes from.
        computed: the stored generated columns, which follow others when those get another type.
    """

    schema: TableSchema
    unlogged: frozenset[str]
    key_index: str = "PRIMARY"
    computed: frozenset[str] = frozenset()


class ColumnChanges(Protocol):
    """A listener for what statements do to columns."""

    def unneeded(self, table: TableId, columns: Sequence[str]) -> None:
        """Takes columns that are dropped, renamed or get another type, and that no mapping needs."""
        ...

    def renamed(self, table: TableId, names: Sequence[tuple[str, str]]) -> None:
        """Takes columns that get another name, old and new, and that a mapping needs."""
        ...


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A captured table with the layout of its latest TABLE_MAP.

    Attributes:
        codec: reads its changes; it has the row schema.
        version: the schema's, computed once.
        columns: how many the log's rows have.
        whole, whole_update: how a row event with complete images says so: number of columns, and bits for all.
        forms: what follows from that for each type of row events.
    """

    codec: RowCodec
    version: str
    columns: int
    whole: bytes
    whole_update: bytes
    forms: Mapping[int, RowForm]

    @property
    def schema(self) -> TableSchema:
        """The row schema."""
        return self.codec.schema


def logged_table(
    schema: TableSchema,
    columns: Sequence[LoggedColumn],
    declared: Sequence[str | None],
    charsets: Charsets,
    dialect: Dialect,
) -> LoggedTable:
    """A table as it is logged; see ``RowCodec``. Raises ``SourceError`` for a column that can't be decoded."""
    count = len(columns)
    head = bytes([count]) if count < 251 else b"\xfc" + count.to_bytes(2, "little")
    bits = b"\xff" * ((count + 7) // 8)
    codec = RowCodec(schema, columns, declared, charsets, dialect)
    whole, whole_update = head + bits, head + 2 * bits
    return LoggedTable(codec, schema.version(), count, whole, whole_update, forms_of(whole, whole_update))


class CapturedTables:
    """Finds the layout for a TABLE_MAP of a captured table, and None for all others.

    Args:
        tables: the captured tables.
        catalog: what the server's catalog said of them when reading began.
        read_catalog: looks a table up in the server's catalog as it is now, once the log shows a new column.
        charsets: of the server.
        dialect: of the engine.
        fold_case: whether table names compare without case (lower_case_table_names is not 0).
        changes: told of columns that a statement changes.

    ``former`` says what of the log is of other tables that had a captured name before; none unless it is set.
    ``answered`` says up to which place of the log statements are answered by a dump of all of a table's rows that was
    asked for since: it reads them as they are afterwards. ``look_ahead`` reads which names columns get further on.
    """

    def __init__(
        self,
        tables: Sequence[TableSchema],
        catalog: Mapping[TableId, CatalogTable],
        read_catalog: ReadCatalog,
        charsets: Charsets,
        dialect: Dialect,
        fold_case: bool,
        changes: ColumnChanges,
    ):
        self._changes = changes
        self._fold = fold_case
        self._ids = {self._folded(schema.id): schema.id for schema in tables}
        self._schemas = {schema.id: schema for schema in tables}
        self._keys = {schema.id: schema.key for schema in tables}
        self._databases = {self._folded(TableId(schema.id.schema, "")).schema for schema in tables}
        self._read_catalog = read_catalog
        self._charsets = charsets
        self._dialect = dialect
        self._catalog = dict(catalog)
        self._key_indexes = {table: found.key_index for table, found in catalog.items()}
        self._layouts: dict[bytes, LoggedTable | None] = {}
        self.former = FormerTables()
        self.answered: dict[TableId, int] = {}
        self.look_ahead: LookAhead = lambda track: Renamings()
        self._ahead = Renamings()

    def captured(self, table: TableId) -> TableId | None:
        """The captured table of that name; for an empty table name, whether the database is ours."""
        folded = self._folded(table)
        if not table.name:
            return table if folded.schema in self._databases else None
        return self._ids.get(folded)

    def names(self) -> tuple[TableId, ...]:
        """The captured tables."""
        return tuple(self._keys)

    def schema(self, table: TableId) -> TableSchema:
        """A captured table as the catalog had it when reading began, or when it was last asked."""
        known = self._catalog.get(table)
        return self._schemas[table] if known is None else known.schema

    def judged(self, statement: Statement, track: Track) -> Statement:
        """A statement by what is known of the tables that it is about."""
        if self.former.passes(statement, replaced_by(statement, self.names()) or statement.tables, track):
            return Statement(StatementKind.OTHER)
        if any(self._loses_key(table, statement.indexes) for table in statement.tables):
            return replace(statement, refused="the index is gone that the table's key comes from")
        if not statement.columns:
            return statement
        (table,) = statement.tables
        if statement.renamed:
            self._forget_layouts(table)
        if table in self.answered and track.position().order < self.answered[table]:
            return replace(statement, refused="")
        later = self._needed_later(table, statement.columns, track)
        merely = self._merely_named(table, statement, later)
        needed = self._needed(table, statement) | {name.lower() for name in later}
        if needed and not needed <= merely:
            if self._undone(table, statement):
                return replace(statement, refused="")
            self._changes.renamed(table, self._last_names(statement, track))
            return statement
        followed = {name for pair in statement.renamed if {n.lower() for n in pair} & merely for name in pair}
        names = {old: later.get(old, new) for old, new in statement.renamed if old in followed}
        self._changes.renamed(table, [*names.items()])
        unneeded = [n for n in statement.columns if n.lower() not in needed and n not in followed]
        if unneeded:
            self._changes.unneeded(table, unneeded)
        return replace(statement, refused="")

    def _needed(self, table: TableId, statement: Statement) -> set[str]:
        """The columns, in small letters, that a statement changes and a mapping needs, also those computed from
        others."""
        schema, found = self._schemas[table], self._catalog.get(table)
        names = {name.lower() for name in statement.columns}
        computed = found.computed if found is not None else frozenset[str]()
        known = {*schema.names(), *statement.columns}
        touched = {name for name in known if name.lower() in names or name in computed}
        return {name.lower() for name in touched if schema.needs(name)}

    def _undone(self, table: TableId, statement: Statement) -> bool:
        """Tells whether a statement only renames columns that have their old names again by now. Rows of in between
        have a name that nobody knows any more: they stop by name."""
        now = self._read_catalog(table)
        if now is None or len(statement.columns) != 2 * len(statement.renamed):
            return False
        names = now.schema.names()
        return all(old in names and new not in names for old, new in statement.renamed)

    def _merely_named(self, table: TableId, statement: Statement, later: Mapping[str, str]) -> set[str]:
        """The columns, in small letters, that only get the name by which the mapping knows them by now, or one on the
        way to it.

        A mapping that was adapted reads on under the new name; rows of before have the same values under the old one.
        """
        schema = self._schemas[table]
        only = statement.only_renamed()
        known = {name for name in schema.names() if schema.needs(name)}
        found = [(o, n) for o, n in only if n in known and not schema.needs(o)]
        on_the_way = [(old, new) for old, new in only if old in later and not schema.needs(old)]
        return {new.lower() for _, new in found} | {name.lower() for pair in on_the_way for name in pair}

    def _needed_later(self, table: TableId, columns: Iterable[str], track: Track) -> dict[str, str]:
        """The names that columns have in the end, of those that a mapping knows by another name than they have here.

        The log is read ahead for that, only if a column isn't in the catalog any more.
        """
        now = self._read_catalog(table)
        names = now.schema.names() if now is not None else ()
        if all(name in names for name in columns):
            return {}
        return needed_later(self._behind(track), self._schemas[table], columns)

    def _last_names(self, statement: Statement, track: Track) -> list[tuple[str, str]]:
        """The names that columns have in the end which a statement renames: old and last ones."""
        found, table = self._behind(track) if statement.renamed else [], statement.tables[0]
        last = [(old, new, last_name(found, table, old)) for old, new in statement.renamed]
        return [(old, new if name == old else name) for old, new, name in last]

    def _behind(self, track: Track) -> list[Renaming]:
        here = track.position().order
        if here >= self._ahead.end:
            self._ahead = self.look_ahead(track)
        return self._ahead.behind(here)

    def _forget_layouts(self, table: TableId) -> None:
        """A name may lead to another column from here on, so that the same layout means something else."""
        self._layouts = {
            shape: found
            for shape, found in self._layouts.items()
            if found is None or found.schema.id != table
        }

    def _loses_key(self, table: TableId, indexes: Collection[str]) -> bool:
        """Tells whether the index that a captured table's key comes from is among these, which are gone."""
        return self._key_indexes.get(table, "PRIMARY").lower() in {name.lower() for name in indexes}

    def known(self, shape: bytes) -> LoggedTable | None:
        """The same, only of layouts that came by before, by the body without the table's number."""
        return self._layouts.get(shape)

    def is_nobodys(self, shape: bytes) -> bool:
        """Tells whether a layout came by before and is of a table that nobody captures."""
        return self._layouts.get(shape, _NOT_SEEN) is None

    def logged(self, body: bytes, track: Track) -> LoggedTable | None:
        """The layout of a TABLE_MAP event's table, or None when nobody captures it, or it is a former one.

        Raises ``SourceError`` for a column that can't be decoded, ``SchemaError`` when the table has a column that
        the catalog no longer knows.
        """
        if self.former.waits(track) and self._is_former(body, track):
            return None
        shape = body[6:]  # without the table number, which changes with every opening of the table
        found = self._layouts.get(shape, _NOT_SEEN)
        if found is not _NOT_SEEN:
            return found  # type: ignore[return-value]
        known = self.captured(table_of(body)[1])
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        layout = None if known is None else self._build(known, self._parsed(known, body, track))
        self._layouts[shape] = layout
        return layout

    def _parsed(self, table: TableId, body: bytes, track: Track) -> TableMap:
        """A TABLE_MAP event's layout, its columns under the names that a mapping knows them by."""
        layout = parse_table_map(body, self._dialect.character)
        schema, names = self._schemas[table], {column.name for column in layout.columns}
        if all(name in names or not schema.needs(name) for name in schema.names()):
            return layout
        later = self._needed_later(table, names, track)
        later = {name: new for name, new in later.items() if new not in names}
        self._changes.renamed(table, [*later.items()])
        columns = tuple(replace(one, name=later.get(one.name, one.name)) for one in layout.columns)
        return replace(layout, columns=columns)

    def outdated(self, body: bytes) -> TableId | None:
        """The captured table of a TABLE_MAP event whose rows have needed columns of other types than the table has
        now; None for all others."""
        table = self.captured(table_of(body)[1])
        catalog = None if table is None else self._catalog.get(table)
        if table is None or catalog is None:
            return None
        layout = parse_table_map(body, self._dialect.character)
        needs, names = self._schemas[table].needs, {column.name for column in layout.columns}
        lacks = [name for name in catalog.schema.names() if name not in names]
        return table if any(needs(name) for name in [*self._unlike(catalog, layout), *lacks]) else None

    def _is_former(self, body: bytes, track: Track) -> bool:
        known = self.captured(table_of(body)[1])
        return known is not None and self.former.has(known, track)

    def _build(self, table: TableId, layout: TableMap) -> LoggedTable:
        catalog = self._catalog.get(table)
        if catalog is None or self._unknown(catalog, layout) or self._unlike(catalog, layout):
            catalog = self._read_catalog(table)
            if catalog is None:
                raise _changed(table, "the table no longer exists")
            self._catalog[table] = catalog
        known = self._schemas[table]
        unknown = [name for name in self._unknown(catalog, layout) if known.needs(name)]
        if unknown:
            raise _changed(table, f"the catalog no longer has the column {', '.join(unknown)}")
        unlike = set(self._unlike(catalog, layout))
        if wrong := sorted(name for name in unlike if known.needs(name)):
            raise _of_other_types(table, wrong)
        by_name: dict[str, Column] = {
            column.name: column for column in catalog.schema.columns if column.name not in unlike
        }
        declared = [
            by_name[column.name].source_type.lower() if column.name in by_name else None
            for column in layout.columns
        ]
        names = [column.name for column in layout.columns if column.name in by_name]
        key = self._keys[table]
        if not set(key) <= set(names):
            raise _changed(table, f"the log's rows lack a column of the key ({', '.join(key)})")
        schema = TableSchema(table, tuple(by_name[name] for name in names), key, known.needed)
        for name, why in schema.unfit_names().items():
            raise _changed(table, f"column {name!r}: {why}")
        return logged_table(schema, layout.columns, declared, self._charsets, self._dialect)

    @staticmethod
    def _unlike(catalog: CatalogTable, layout: TableMap) -> list[str]:
        """The columns that the log has under another type than the catalog."""
        declared = {column.name: column.source_type.lower() for column in catalog.schema.columns}
        return [
            column.name
            for column in layout.columns
            if column.name in declared and not agrees(column, declared[column.name])
        ]

    def _unknown(self, catalog: CatalogTable, layout: TableMap) -> list[str]:
        known = {column.name for column in catalog.schema.columns} | catalog.unlogged
        names = [column.name for column in layout.columns if column.name not in known]
        return [name for name in names if not re.fullmatch(self._dialect.hidden, name)]

    def _folded(self, table: TableId) -> TableId:
        return TableId(table.schema.lower(), table.name.lower()) if self._fold else table


def _of_other_types(table: TableId, columns: Sequence[str]) -> ReplacedError:
    return ReplacedError(
        f"rows of {table} have columns of other types there than the table has now",
        [table],
        cause=f"column {', '.join(columns)}: its type was changed later on, or another table has the name now",
        remedy=all_rows_read([table]),
    )


def _changed(table: TableId, cause: str) -> SchemaError:
    return SchemaError(
        "a captured table was changed in a way that can't be carried on",
        where=str(table),
        cause=cause,
        remedy="undo the change, or adapt the mapping and start again (docs/how-to/schema-changes.md says where rows"
        " have to be read once more); if that stops here again, start the migration anew (docs/how-to/start-anew.md)",
    )
