"""The benchmark's writers of orders in a process of their own: what they say was done, and no silent end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from migrator.errors import MigratorError
from scenarios.bench.orders.old_schema import create
from scenarios.bench.orders.writers_apart import OrderWritersApart
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration

_ROWS = 500
# each row change shows once: an update raises items, an insert has a late id, a delete takes a row away
_BEFORE = "SELECT count(*), coalesce(sum(items), 0) FROM orders WHERE id <= 500"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.05)


@pytest.mark.parametrize("source", ["old_pg", "old_maria"])
def test_what_is_reported_was_committed_and_nothing_writes_afterwards(
    source: str, request: pytest.FixtureRequest
) -> None:
    old: Database = request.getfixturevalue(source)
    create(scenario_database(old), _ROWS)
    with OrderWritersApart(scenario_database(old), _ROWS, rate_per_s=None) as writers:
        assert writers.report().commits == 0
        writers.start()
        until(lambda: writers.report().commits > 300)
        done = writers.stop()
        late = old.query("SELECT count(*) FROM orders WHERE id > 500")[0][0]
        ((left, _),) = held = old.query(_BEFORE)
        deleted = _ROWS - left
        assert done.commits == done.row_changes > 300
        assert 0 < late + deleted < done.commits
        assert min(late, deleted) > 0
        time.sleep(0.2)
        assert old.query(_BEFORE) == held


def test_the_rate_asked_for_is_kept(old_pg: Database) -> None:
    create(scenario_database(old_pg), _ROWS)
    with OrderWritersApart(scenario_database(old_pg), _ROWS, rate_per_s=20) as writers:
        writers.start()
        until(lambda: writers.report().row_changes >= 10)
        started, before = time.monotonic(), writers.report().row_changes
        time.sleep(1)
        done = writers.stop().row_changes - before
        assert done <= 20 * (time.monotonic() - started) + 25, "faster than asked for"


def test_a_process_that_has_ended_is_an_error(old_pg: Database) -> None:
    create(scenario_database(old_pg), _ROWS)
    with OrderWritersApart(scenario_database(old_pg), _ROWS, rate_per_s=100) as writers:
        writers.start()
        until(lambda: writers.report().commits > 5)
        assert writers._process.pid is not None
        os.kill(writers._process.pid, signal.SIGKILL)
        with pytest.raises(MigratorError, match="doesn't answer") as caught:
            until(lambda: writers.report().commits < 0)  # never: it goes on until the report refuses
    assert "exit code -9" in caught.value.cause
