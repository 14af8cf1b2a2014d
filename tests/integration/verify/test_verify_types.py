"""The judge's readers, which share no code with capture, say the same of every type and value."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.model.chunk import ChunkRequest
from migrator.model.table import TableSchema
from tests.fix_postgres_source import chunk_reader, prepared
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import source_of
from tests.integration.exact import assert_same
from tests.integration.judged import settings_of as settings
from tests.integration.sources.binlog.rows import test_binlog_values as binlog
from tests.integration.sources.postgres import test_postgres_values as postgres
from tests.servers import Database
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.postgres.source import PostgresSource
from verify.readers.source import SourceReader

pytestmark = pytest.mark.integration


def judged(reader: SourceReader, table: str, directory: Path) -> tuple[TableSchema, pa.Table]:
    """Row schema and rows by key, as the judge reads them."""
    found = reader.snapshot([table], directory).tables[table]
    return found.schema, pq.read_table(found.path).sort_by("id")


def test_on_mysql_and_mariadb(engine: BinlogEngine, old_binlog: Database, tmp_path: Path) -> None:
    binlog.fill(old_binlog, binlog.create(old_binlog), seed=5)
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["t"])
    (chunk,) = engine.dump(source, schema, 1000)
    reader = {"mysql": MySQLSource, "mariadb": MariaDBSource}[engine.kind](settings(old_binlog))
    theirs, rows = judged(reader, "t", tmp_path)
    assert [(column.name, column.type) for column in theirs.columns] == [
        (column.name, column.type) for column in schema.columns
    ]
    assert_same(chunk.rows, rows)


def test_on_postgresql(old_pg: Database, tmp_path: Path) -> None:
    postgres.create(old_pg)
    (schema,) = prepared(postgres_source(old_pg), "v")
    count = postgres.fill(old_pg, seed=5)
    with chunk_reader(postgres_source(old_pg)) as chunks:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, count + 1), schema)
    theirs, rows = judged(PostgresSource(settings(old_pg), "none"), "v", tmp_path)
    assert [(column.name, column.type) for column in theirs.columns] == [
        (column.name, column.type) for column in schema.columns
    ]
    assert_same(chunk.rows, rows)
