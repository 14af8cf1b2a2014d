"""A story's mapping over whole tables: old rows read as in production, mapped by Spark, stored in the new
schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from alembic import command
from alembic.config import Config
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy import URL, create_engine

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.model.chunk import Chunk
from migrator.model.table import TableSchema
from scenarios.workload import Workload, WriterReport
from tests import fix_postgres_source
from tests.integration.binlog_engine import MARIADB, MYSQL
from tests.integration.binlog_reading import source_of
from tests.servers import Database
from transforms import Mapping
from transforms.casts import cast_column, cast_problem, spark_type
from transforms.frames import arrow_frame

CHUNK_ROWS = 100_000
WRITING_S = 120.0
_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql", "mysql": "mysql+pymysql"}

Types = dict[str, dict[str, str]]
"""Spark types by target table and column."""


def frames(spark: SparkSession, old: Database) -> dict[str, DataFrame]:
    """Every old table, as a dump reads it."""
    found = {}
    for schema, chunks in _postgres_dump(old) if old.kind == "postgresql" else _binlog_dump(old):
        rows = pa.concat_tables([chunk.rows for chunk in chunks])
        found[schema.id.name] = arrow_frame(spark, rows, schema)
    return found


def _binlog_dump(old: Database) -> Iterator[tuple[TableSchema, list[Chunk]]]:
    source = source_of(old)
    engine = MARIADB if old.kind == "mariadb" else MYSQL
    for schema in engine.catalog(source).tables(_tables(old, "DATABASE()")):
        yield schema, engine.dump(source, schema, CHUNK_ROWS)


def _postgres_dump(old: Database) -> Iterator[tuple[TableSchema, list[Chunk]]]:
    source = fix_postgres_source.source_of(old)
    with fix_postgres_source.chunk_reader(source) as reader:
        for schema in PostgresCatalog(source).tables(_tables(old, "'public'")):
            yield schema, fix_postgres_source.all_chunks(reader, schema, CHUNK_ROWS)


def _tables(old: Database, schema: str) -> list[str]:
    names = old.query(
        "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        f" AND table_schema = {schema} ORDER BY 1"
    )
    return [name for (name,) in names]


def mapped(mapping: Mapping, tables: dict[str, DataFrame], types: Types) -> Iterator[tuple[str, pa.Table]]:
    """Rows of each target in turn, cast to the types of the target's columns by the rules of the product."""
    for target in mapping:
        made = target.function(*(tables[name] for name in target.sources))
        wanted = {name: spark_type(types[target.name][name]) for name in made.columns}
        found = {field.name: field.dataType for field in made.schema.fields}
        assert {name: cast_problem(found[name], wanted[name]) for name in wanted} == dict.fromkeys(wanted)
        casts = [cast_column(F.col(name), name, found[name], wanted[name]) for name in wanted]
        yield target.name, made.select(*casts).toArrow()


def migrate(new: Database, project: Path, revision: str = "head") -> None:
    """Runs the project's revisions up, or down to ``base``."""
    url = URL.create(
        _DRIVERS[new.kind],
        username=new.user,
        password=new.password or None,
        host=new.host,
        port=new.port,
        database=new.database,
    )
    config = Config()
    config.set_main_option("script_location", str(project / "alembic"))
    engine = create_engine(url)
    change: Callable[[Any, str], None] = command.downgrade if revision == "base" else command.upgrade
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        change(config, revision)
    engine.dispose()


def written(writers: Workload) -> WriterReport:
    """What the writers did until they came to their limit of row changes; fails if they don't in time."""
    writers.start()
    done = writers.wait(WRITING_S)
    report = writers.stop()
    assert done, report
    return report
