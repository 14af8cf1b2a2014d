"""In a run, capture gives way to apply."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.run.capture.priority import NICENESS
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="niceness is counted by thread on Linux only"),
]
CAPTURE = {"log.records", "chunk.selected", "capture.appended"}
APPLY = {"apply.mapped", "apply.committed"}


@pytest.mark.slow
def test_log_and_chunks_are_read_with_a_lower_priority_than_batches_are_applied(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    create(scenario_database(old_pg), 50)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    parts = wiring.parts(configuration.load(project.config))
    own, seen = os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), dict[str, int]()

    def step(name: str) -> None:
        seen[name] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) - own

    reached = caught_up(parts.catalog.position)
    Migration(replace(parts, step=step)).run(
        Stopping(), lambda now: now.applied_dump_complete and reached(now)
    )
    assert {name: seen[name] for name in CAPTURE} == dict.fromkeys(CAPTURE, min(NICENESS, 19 - own))
    assert {name: seen[name] for name in APPLY} == dict.fromkeys(APPLY, 0)
