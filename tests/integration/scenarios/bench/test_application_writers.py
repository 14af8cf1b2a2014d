"""The application of the benchmark on a server: its rows are its seed's, and every kind of change can be written."""

from __future__ import annotations

import time

import pytest

from migrator.errors import MigratorError
from scenarios.bench.shapes.application.changes import Change, changes
from scenarios.bench.shapes.application.tables import TABLES, create, rows_of
from scenarios.bench.shapes.application.writers import ApplicationWriters, write_backlog
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration

SCALE = 0.01
DIGEST = "SELECT md5(string_agg(t::text, '' ORDER BY {name}_id)) FROM {name} t"


def test_rows_are_those_of_the_seed(old_pg: Database) -> None:
    old, found = scenario_database(old_pg), []
    for seed in (5, 5, 6):
        create(old, scale=SCALE, seed=seed)
        found.append([old_pg.query(DIGEST.format(name=table.name)) for table in TABLES])
        for table in TABLES:
            assert old_pg.query(f"SELECT count(*) FROM {table.name}") == [(rows_of(table, SCALE),)]
        old_pg.execute(f"DROP TABLE {', '.join(table.name for table in TABLES)}")
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0], found[2], strict=True))


def test_every_kind_of_change_can_be_written(old_pg: Database) -> None:
    old = scenario_database(old_pg)
    create(old, scale=SCALE)
    for change in changes(SCALE):
        write_backlog(old, (change,), 2)
    ((notes,),) = old_pg.query("SELECT count(*) FROM product WHERE notes LIKE 'note %'")
    assert notes >= 1


def test_writers_keep_the_rate_and_end(old_pg: Database) -> None:
    old = scenario_database(old_pg)
    create(old, scale=SCALE)
    with ApplicationWriters(old, changes(SCALE), rate_per_s=400) as writers:
        begun = time.monotonic()
        writers.start()
        while writers.report().row_changes < 400:
            assert time.monotonic() < begun + 120
            time.sleep(0.1)
        done = writers.stop().row_changes
        allowed = 400 * (time.monotonic() - begun) + 400
    assert 400 <= done < allowed
    assert old_pg.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'pgbench'") == []


def test_a_change_that_the_server_refuses_is_an_error_with_its_words(old_pg: Database) -> None:
    create(scenario_database(old_pg), scale=SCALE)
    wrong = Change("wrong", "read", "UPDATE nowhere SET a = 1;\n")
    with pytest.raises(MigratorError, match="pgbench failed") as caught:
        write_backlog(scenario_database(old_pg), (wrong,), 2)
    assert "nowhere" in caught.value.cause
