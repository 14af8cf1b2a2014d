"""The benchmark's writers of twenty tables: what they say they changed is what the tables hold, and no silent
end."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from migrator.errors import MigratorError
from scenarios.bench.shapes.gauge_writers import GaugeWriters
from scenarios.bench.shapes.old_schema import TABLES, create_many
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration

_ROWS = 50
_ALL = " + ".join(f"(SELECT sum(n) FROM gauge_{number})" for number in range(1, TABLES + 1))
_BEFORE = TABLES * _ROWS * (_ROWS + 1) // 2


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.05)


def test_the_changes_that_are_reported_are_in_the_tables_and_nothing_writes_afterwards(
    old_pg: Database,
) -> None:
    old = scenario_database(old_pg)
    create_many(old, _ROWS)
    with GaugeWriters(old, _ROWS, rate_per_s=500) as writers:
        assert writers.report().row_changes == 0
        writers.start()
        until(lambda: writers.report().row_changes > 100)
        done = writers.stop().row_changes
    ((held,),) = old_pg.query(f"SELECT {_ALL}")
    assert (
        100 < done <= held - _BEFORE <= done + 20
    )  # between the counting and the end a few may still commit
    time.sleep(0.2)
    assert old_pg.query(f"SELECT {_ALL}") == [(held,)]
    touched = sum(bool(old_pg.query(f"SELECT 1 FROM gauge_{n} WHERE n <> id")) for n in range(1, TABLES + 1))
    assert touched > TABLES // 2


def test_writers_that_end_by_themselves_are_an_error_with_their_last_words(old_pg: Database) -> None:
    old = scenario_database(old_pg)
    create_many(old, _ROWS)
    with GaugeWriters(old, _ROWS, rate_per_s=500) as writers:
        writers.start()
        until(lambda: writers.report().row_changes > 10)
        old_pg.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench'"
        )
        with pytest.raises(MigratorError, match="ended by itself") as caught:
            until(lambda: writers.report().row_changes < 0)  # never: it goes on until the report refuses
    assert "terminating connection" in caught.value.cause
