"""The whole Sakila database with awkward rows: every table is read equal by chunks and by the log."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.log_reader import MariaLogReader
from migrator.columnar.text import rows_to_table
from scenarios.stories.sakila import old_schema
from tests.integration.binlog_engine import MARIADB
from tests.integration.binlog_reading import fold, read_to, source_of
from tests.integration.run_project import scenario_database
from tests.integration.sources.binlog_preflight import obstacles
from tests.servers import Database

pytestmark = pytest.mark.integration


def put_aside(table: str) -> tuple[str, ...]:
    return f"CREATE TABLE `kept_{table}` AS SELECT * FROM `{table}`", f"DELETE FROM `{table}`"


def put_back(table: str) -> tuple[str, ...]:
    """What a trigger has inserted before goes again."""
    return f"DELETE FROM `{table}`", f"INSERT INTO `{table}` SELECT * FROM `kept_{table}`"


@pytest.mark.slow
def test_every_sakila_table_is_equal_on_both_paths(old_maria: Database) -> None:
    source = source_of(old_maria, part_rows=5000)
    old_schema.load(scenario_database(old_maria))
    names = [
        name
        for (name,) in old_maria.query(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
            " AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1"
        )
    ]
    tables = MariaCatalog(source).tables(names)
    # its foreign keys cascade, which is told of, and in nobody's way until something does cascade
    assert obstacles(MARIADB, old_maria, *names) == {}
    as_stored = "SET foreign_key_checks = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"
    old_maria.execute(as_stored, *(one for name in names for one in put_aside(name)))
    begin = MariaCatalog(source).position()  # a reader begins where its tables are there already
    old_maria.execute(as_stored, *(one for name in names for one in put_back(name)))
    reader = MariaLogReader(source, tables)
    reader.start(begin)
    changes = read_to(reader, MariaCatalog(source).position()).changes()
    reader.close()

    assert len(tables) == 16
    total = 0
    for schema in tables:
        rows = fold([change for change in changes if change.table == schema.id], schema.key_indexes())
        chunks = MARIADB.dump(source, schema, 700)
        by_key = [(name, "ascending") for name in schema.key]
        for chunk in chunks:
            keys = chunk.rows.select(list(schema.key)).to_pylist()
            assert len({tuple(key.values()) for key in keys}) == chunk.row_count
        dumped = [row for chunk in chunks for row in chunk.rows.sort_by(by_key).to_pylist()]
        logged = rows_to_table(schema, list(rows.values())).to_pylist()
        order = [tuple(row[name] for name in schema.key) for row in dumped]
        place = {key: number for number, key in enumerate(order)}
        assert len(place) == len(logged) == len(dumped), schema.id
        logged.sort(key=lambda row: place[tuple(row[name] for name in schema.key)])
        assert logged == dumped, schema.id
        total += len(dumped)
    assert total > 40_000
