"""A whole migration where everything is set for the whole server that we fear: check, dump, stream, verify."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.bench.orders.old_schema import create, touch
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.connections.mysql.mysql_settings import drawn, hostile
from tests.integration.run_project import make, scenario_database
from tests.servers import Database, MariaDBServer, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture(
    scope="module",
    params=[MYSQL, pytest.param(MARIADB, marks=pytest.mark.slow)],
    ids=lambda engine: engine.kind,
)
def engine(request: pytest.FixtureRequest) -> BinlogEngine:
    """Each engine in turn; what is set and pinned for one is looked at in the sweeps of both."""
    found: BinlogEngine = request.param
    return found


@pytest.fixture
def new(spare_server: MariaDBServer) -> Iterator[Database]:
    with fresh_database(spare_server, "new") as database:
        yield database


@pytest.mark.slow
def test_a_migration_is_right_whatever_is_set(
    engine: BinlogEngine,
    spare_server: MariaDBServer,
    spare_database: Database,
    new: Database,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """The executors read chunks and write; what is compared in the end is read with the server's own settings."""
    create(scenario_database(spare_database), 3000)
    project = make(tmp_path, spare_database, new)
    text = project.config.read_text()
    assert "[source]\n" in text
    project.config.write_text(text.replace("[source]\n", '[source]\nplacement = "witness"\n', 1))
    settings = drawn(engine.kind, random.Random(7))
    with hostile(spare_server, settings):
        assert spare_server.admin.query("SELECT @@SESSION.time_zone") != [("SYSTEM",)], (
            "the control: it is set"
        )
        assert project.command("check") == 0
        project.run_here()
    assert project.differences() == []
    touch(scenario_database(spare_database), 100, 700, 50)
    spare_database.execute("DELETE FROM orders WHERE id BETWEEN 800 AND 900")
    assert project.differences(), "the control: there is something to stream"
    with hostile(spare_server, settings):
        project.run_here()
        assert project.command("verify") == 0
    assert project.differences() == []
