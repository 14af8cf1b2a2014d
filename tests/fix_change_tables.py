"""Helpers for tests of change tables: triggers made by the script that users get, and a reader on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.settings import CHANGE_TABLES, PostgresSource
from migrator.model.event import LogRecord, RowChange
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests import fix_postgres_source as plain
from tests.fix_postgres_source import changes, reached, read_until
from tests.servers import Database


def source_of(database: Database, /, **more: Any) -> PostgresSource:
    """Settings of a source with change tables; polls follow each other at once."""
    return plain.source_of(database, **{"log": CHANGE_TABLES, "poll_s": 0.0, **more})


def captured(database: Database, *tables: str, **more: Any) -> tuple[PostgresSource, list[TableSchema]]:
    """Makes change tables and triggers with the printed script."""
    source = source_of(database, **more)
    catalog = ChangeTableCatalog(source)
    with database.connect() as connection:
        connection.execute(catalog.script(tables))
    assert [each for each in catalog.preflight(tables) if each.fatal] == []
    return source, catalog.tables(tables)


@contextmanager
def started(
    source: PostgresSource, schemas: Sequence[TableSchema], after: Position | None = None
) -> Iterator[ChangeTableLogReader]:
    """A started reader, closed at the end."""
    reader = ChangeTableLogReader(source, schemas)
    try:
        reader.start(after)
        yield reader
    finally:
        reader.close()


def read_all(reader: ChangeTableLogReader, source: PostgresSource) -> list[LogRecord]:
    """Records until everything that is visible now was delivered."""
    goal = ChangeTableCatalog(source).position()
    return read_until(reader, lambda records: reached(records, goal))


def read_changes(reader: ChangeTableLogReader, source: PostgresSource) -> list[RowChange]:
    """The changes among them."""
    return changes(read_all(reader, source))
