"""Starting while a server can't be reached: a first start says so, one that goes on waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database, embedded_postgres

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A target server of the test's own."""
    with (
        scratch_directory("migrator-start-test-") as folder,
        embedded_postgres(folder / "pg") as one,
    ):
        yield one


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, server: EmbeddedPostgres) -> Project:
    """Migrates into that server."""
    create(scenario_database(old_pg), 50)
    server.create_database("fresh")
    new = Database(server.host, server.port, "fresh", server.superuser, "", "postgresql")
    return run_project.make(tmp_path / "project", old_pg, new)


def test_a_first_start_says_that_the_target_cannot_be_reached(
    project: Project, server: EmbeddedPostgres, spark: SparkSession
) -> None:
    server.stop()
    with pytest.raises(ConnectionFailed) as caught:
        project.run_here()
    assert caught.value.retryable


@pytest.mark.slow
def test_a_run_that_goes_on_waits_for_its_target(
    project: Project, server: EmbeddedPostgres, spark: SparkSession
) -> None:
    project.run_here()
    project.old.execute("UPDATE orders SET state = 'SHIPPED' WHERE id % 2 = 0")
    server.stop()
    parts = wiring.parts(configuration.load(project.config))
    migration, stopping = Migration(parts), Stopping()
    thread = stopping.thread("run", lambda: migration.run(stopping, caught_up(parts.catalog.position)))
    deadline = time.monotonic() + 60
    while not migration.progress.snapshot().note.endswith("; starting again"):
        assert time.monotonic() < deadline, "it doesn't say that it waits"
        assert not stopping.requested(), "it has ended"
        stopping.wait(0.05)
    server.start()
    thread.join(timeout=120)
    stopping.raise_failure()
    assert not thread.is_alive()
    assert project.differences() == []
