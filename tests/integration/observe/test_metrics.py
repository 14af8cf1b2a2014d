"""A real Prometheus scrapes a real run: each panel has its lines, and troubles are told by alerts and page."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.observe.watched import PATIENCE_S, Watched, between, children, troubled
from tests.integration.run_project import scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from tests.unit.observers.test_alerts import DASHBOARD

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

EMPTY_HERE = {
    "Dual reads": "nobody asked both sides the same",
}
"""Panels without a line in this run, and why."""


def questions() -> Iterator[tuple[str, str]]:
    """Title and question of each line of the dashboard, for the migration of the tests."""
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$migration", ".*")


def test_each_panel_has_lines_of_a_real_run(
    tmp_path: Path, folder: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    create(scenario_database(old_pg), 300)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    old_pg.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '2GB'", "SELECT pg_reload_conf()")
    writers = OrderWriters(scenario_database(old_pg), 300, rate_per_s=20)
    try:
        watched = Watched(project, folder)
        with watched.prometheus, watched.running():
            watched.await_value('migrator_phase{phase="streaming"}', 1)
            watched.await_value("migrator_lag_seconds", 0)  # what is captured may not be applied yet
            assert project.command("verify", "--wait", "20") == 0
            writers.start()
            assert not set(EMPTY_HERE) - {title for title, _ in questions()}
            for title, question in questions():
                if title in EMPTY_HERE:
                    assert not watched.asked(question), f"{title} has lines after all"
                else:
                    await_true(
                        partial(watched.has, question), f"{title}: {question}", PATIENCE_S, every_s=0.5
                    )
            firing = watched.asked('ALERTS{alertstate="firing"}')
            assert [one["metric"]["alertname"] for one in firing] == [], "a healthy run alarms nobody"
    finally:
        writers.stop()
        old_pg.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_seeded_troubles_are_told_by_alerts(
    tmp_path: Path, folder: Path, old_maria: Database, new_pg: Database, spark: SparkSession
) -> None:
    create(scenario_database(old_maria), 300)
    with between(tmp_path, old_maria, new_pg) as (project, source, target):
        watched = Watched(project, folder)
        with watched.prometheus, watched.running() as process:
            watched.await_value('migrator_phase{phase="streaming"}', 1)
            watched.await_value("migrator_lag_seconds", 0)
            troubled(target.refuse, target.heal, watched, "MigratorTargetDown")
            watched.await_value("migrator_target_up", 1)
            troubled(source.refuse, source.heal, watched, "MigratorSourceDown", lag_known=0)
            watched.await_value("migrator_lag_seconds", 0)
            troubled(lambda: source.latency(0.8), source.heal, watched, "MigratorNetworkSlow")
            new_pg.execute("UPDATE purchase SET channel = 'nobody' WHERE purchase_id = 7")
            assert project.command("verify", "--wait", "20") == 1
            watched.await_told("MigratorDifferent")
            process.send_signal(signal.SIGKILL)
            watched.await_alert("MigratorDown")
        mapping = project.config.parent / "mapping.py"
        whole = mapping.read_text()
        mapping.write_text(whole.replace('F.col("customer")', 'F.col("nobody")'))
        with watched.running() as failed:
            output, _ = failed.communicate(timeout=120)
            assert failed.returncode == 2, output
        mapping.write_text(whole)
        with watched.prometheus, watched.running():
            watched.await_told("MigratorEndedByError")
            (ended,) = watched.asked("migrator_last_end_timestamp_seconds")
            assert ended["metric"]["error"] == "MappingError"


def test_a_standby_tells_of_the_migration_and_a_stalled_spark_and_its_takeover_are_told(
    tmp_path: Path, folder: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    create(scenario_database(old_pg), 300)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    watched = Watched(project, folder, processes=2)
    first, second = (f'instance="{address}"' for address in watched.addresses)
    writers = OrderWriters(scenario_database(old_pg), 300, rate_per_s=20)
    with watched.prometheus, watched.running("--ha") as leader:
        watched.await_value(f'migrator_phase{{phase="streaming",{first}}}', 1)
        with watched.running("--ha", which=1):
            watched.await_value(f'migrator_phase{{phase="standing by",{second}}}', 1)
            watched.await_value(f"migrator_lag_seconds{{{second}}}", 0)
            assert not watched.firing("MigratorTookOver")
            writers.start()
            try:
                (jvm,) = children(leader.pid, "java")
                os.kill(jvm, signal.SIGSTOP)
                try:
                    watched.await_told("MigratorNothingApplied")
                    watched.await_told("MigratorHotTable")
                    watched.await_value(f"migrator_lag_known{{{second}}}", 1)
                    assert float(watched.asked(f"migrator_lag_seconds{{{second}}}")[0]["value"][1]) > 5
                finally:
                    os.kill(jvm, signal.SIGCONT)
                watched.await_alert("MigratorNothingApplied", fires=False)
            finally:
                writers.stop()
            leader.kill()
            watched.await_told("MigratorTookOver", 1)
            watched.await_value(f"migrator_lag_seconds{{{second}}}", 0)
            (told,) = watched.asked('ALERTS{alertname="MigratorDown",alertstate="firing"}')
            assert told["metric"]["instance"] == watched.addresses[0]
