"""A real Prometheus scrapes a real run: every panel has its lines, and seeded troubles are told by alerts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.process import scratch_directory
from migrator.embedded.prometheus import EmbeddedPrometheus
from scenarios.bench.orders.old_schema import OrderWriters, create
from scenarios.proxy.proxy import TcpProxy
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from tests.unit.observers.test_alerts import DASHBOARD, RULES

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 180.0
EMPTY_HERE = {
    "Dual reads": "nobody asked both sides the same",
}
"""Panels without a line in this run, and why."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that Prometheus may enter, which doesn't run as root."""
    with scratch_directory("migrator-observe-") as found:
        yield found


def hurried(folder: Path) -> Path:
    """The alerts with minutes as seconds, and a lag of five seconds as one of a minute."""
    rules = re.sub(r"\b(\d+)m\b", r"\1s", RULES.read_text("utf-8")).replace("for: 30s", "for: 3s")
    file = folder / "alerts.yml"
    rules = re.sub(r"\[[125]s\]", "[10s]", rules).replace("_seconds > 60", "_seconds > 5")
    standing_by = 'migrator_phase{phase="standing by"}'
    file.write_text(rules.replace(f"{standing_by}[10s]", f"{standing_by}[2m]"), "utf-8")
    return file


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


class Watched:
    """A run, and the Prometheus that scrapes it."""

    def __init__(self, project: Project, folder: Path, processes: int = 1):
        self._project = project
        self.addresses = [free_address() for _ in range(processes)]
        try:
            self.prometheus = EmbeddedPrometheus(folder / "prometheus", self.addresses, [hurried(folder)])
        except PackagesUnavailable as error:
            pytest.skip(f"no Prometheus: {error}")

    @contextmanager
    def running(self, *options: str, which: int = 0) -> Iterator[subprocess.Popen[str]]:
        process = self._project.process("run", "--plain", "--listen", self.addresses[which], *options)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def asked(self, question: str) -> list[dict[str, Any]]:
        """The answer to an instant query."""
        where = f"http://{self.prometheus.host}:{self.prometheus.port}/api/v1/query"
        with urllib.request.urlopen(f"{where}?{urllib.parse.urlencode({'query': question})}") as answer:
            document = json.load(answer)
        assert document["status"] == "success", question
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    def has(self, question: str) -> bool:
        return bool(self.asked(question))

    def firing(self, alert: str) -> bool:
        return self.has(f'ALERTS{{alertname="{alert}",alertstate="firing"}}')

    def await_alert(self, alert: str, fires: bool = True) -> None:
        what = f"{alert} {'fires' if fires else 'is over'}"
        await_true(lambda: self.firing(alert) is fires, what, PATIENCE_S, every_s=0.5)

    def await_value(self, question: str, value: float) -> None:
        def holds() -> bool:
            return any(float(one["value"][1]) == value for one in self.asked(question))

        await_true(holds, f"{question} is {value:g}", PATIENCE_S, every_s=0.5)


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


@contextmanager
def between(tmp_path: Path, old: Database, new: Database) -> Iterator[tuple[Project, TcpProxy, TcpProxy]]:
    """A project whose servers are behind proxies."""
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(TcpProxy(side.host, side.port, kind=side.kind)) for side in (old, new)
        )
        ends = (
            replace(old, host=source.host, port=source.port),
            replace(new, host=target.host, port=target.port),
        )
        yield run_project.make(tmp_path / "project", *ends), source, target


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
            watched.await_alert("MigratorDifferent")
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
            watched.await_alert("MigratorEndedByError")
            (ended,) = watched.asked("migrator_last_end_timestamp_seconds")
            assert ended["metric"]["error"] == "MappingError"


def troubled(
    begin: Callable[[], object],
    end: Callable[[], object],
    watched: Watched,
    alert: str,
    lag_known: int = 1,
) -> None:
    """Seeds a trouble, waits for its alert, and ends it again."""
    assert not watched.firing(alert)
    begin()
    watched.await_alert(alert)
    watched.await_value("migrator_lag_known", lag_known)
    end()
    watched.await_alert(alert, fires=False)


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
                    watched.await_alert("MigratorNothingApplied")
                    watched.await_alert("MigratorHotTable")
                    watched.await_value(f"migrator_lag_known{{{second}}}", 1)
                    assert float(watched.asked(f"migrator_lag_seconds{{{second}}}")[0]["value"][1]) > 5
                finally:
                    os.kill(jvm, signal.SIGCONT)
                watched.await_alert("MigratorNothingApplied", fires=False)
            finally:
                writers.stop()
            leader.kill()
            watched.await_alert("MigratorTookOver")
            watched.await_value(f"migrator_lag_seconds{{{second}}}", 0)
            (told,) = watched.asked('ALERTS{alertname="MigratorDown",alertstate="firing"}')
            assert told["metric"]["instance"] == watched.addresses[0]


def children(process: int, name: str) -> list[int]:
    """Processes of that name which a process started."""
    found = [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return [child for child in found if Path(f"/proc/{child}/comm").read_text().strip() == name]
