"""A Spark standalone cluster: code travels to it, what can't work there is refused, and executors may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.embedded.process import scratch_directory
from migrator.embedded.spark import EmbeddedSparkCluster
from scenarios.bench.orders.old_schema import OrderWriters, create
from scenarios.faults.points import PointServer, parse_point
from tests.fix_cluster import cluster_conf
from tests.integration import run_project
from tests.integration.embedded.test_embedded import await_true, gone
from tests.integration.run_project import Project, scenario_database
from tests.integration.spark import cluster_probe
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]
ROWS = 1000
PATIENCE_S = 400.0
LEFT = "SELECT relname FROM pg_class WHERE relname LIKE 'stage!_%' ESCAPE '!'"


def probe(name: str, cluster: str, folder: Path) -> dict[str, str]:
    """What one of the programs of ``cluster_probe`` found out, in a driver of its own."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            cluster_probe.__name__,
            name,
            cluster,
            str(folder),
            json.dumps(cluster_conf()),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_code_travels_and_what_cannot_work_is_refused_by_name(
    cluster: EmbeddedSparkCluster, tmp_path: Path
) -> None:
    found = probe("refusals", cluster.url, tmp_path)
    assert found["tool"].startswith("tool-"), "the workers' own installation was used"
    assert found["mapping"] == "from the mapping's folder"
    assert found["added"] == "from --py-files"
    assert found["fine"] == "none"
    assert "executors can't do their part" in found["missing module"]
    assert "no_such_module" in found["missing module"]
    assert "No such file" in found["folder not shared"]
    assert "executors have another Python" in found["other Python"]
    assert "3.10" in found["other Python"]
    assert "Python (/nowhere/python)" in found["no Python"]
    assert "--py-files" in found["not among these"]
    assert "no executor came within 1 s" in found["no executor"]
    assert "given this application up" in found["given up"]
    assert found["again"] == "10"
    assert list(tmp_path.glob(".probe-*")) == []


@pytest.mark.long
def test_a_master_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """Spark tries for a minute."""
    assert "Spark can't be started" in probe("nobody", "spark://127.0.0.1:1", tmp_path)["error"]


@pytest.mark.slow
def test_a_cluster_ends_when_its_owner_is_killed() -> None:
    """Executors as well: they are children of the workers."""
    with scratch_directory("migrator-cluster-") as folder:
        owner = subprocess.Popen(
            [
                sys.executable,
                "-m",
                cluster_probe.__name__,
                "own",
                "",
                str(folder),
                json.dumps(cluster_conf()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) >= 3, "a master, a worker and an executor"
        assert not any(map(gone, pids))
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        await_true(lambda: all(map(gone, pids)), "all of the cluster ended after its owner")


@pytest.fixture
def project(tmp_path: Path, cluster: EmbeddedSparkCluster, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), ROWS)
    made = run_project.make(tmp_path / "project", old_pg, new_pg)
    settings = made.config.read_text().replace('master = "local[2]"', f'master = "{cluster.url}"')
    sections: dict[str, dict[str, object]] = {
        "apply": {"staging_rows": 1, "batch_rows": ROWS // 5},
        "capture": {
            "chunk_reading": "executors",
            "chunk_rows": ROWS // 10,
            "chunk_rows_min": ROWS // 10,
            "chunk_rows_max": ROWS // 10,
        },
        "spark.conf": {f'"{name}"': value for name, value in cluster_conf().items()},
    }
    for section, values in sections.items():
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        settings += "\n".join(["", f"[{section}]", *lines, ""])
    made.config.write_text(settings)
    return made


def run_and_kill(project: Project, cluster: EmbeddedSparkCluster, socket: Path, kills: list[str]) -> str:
    """A run under writers, an executor killed at each of the points; the writers end with the last one.

    Before the dump is over, that is: so the run goes as far as they came. Returns what it printed.
    """
    killed: list[int] = []
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=50)
    changes: list[int] = []

    def kill() -> None:
        victim = cluster.executors()[0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)
        if len(killed) == len(kills):
            changes.append(writers.stop().row_changes)

    writers.start()
    with PointServer(socket) as points, pytest.MonkeyPatch.context() as patch:
        for each in kills:
            points.on(*parse_point(each), kill)
        for name, value in points.environment().items():
            patch.setenv(name, value)
        output = ended_well(project, "run", "--plain", "--until", "caught-up")
        points.raise_failure()
    assert changes
    assert changes[0] > 0
    assert len(set(killed)) == len(kills)
    assert all(map(gone, killed))
    return output


def ended_well(project: Project, *arguments: str) -> str:
    process = project.process(*arguments)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    return output


@pytest.mark.slow
def test_a_migration_whose_executor_is_killed_while_a_batch_is_applied_ends_equal(
    project: Project, cluster: EmbeddedSparkCluster, tmp_path: Path
) -> None:
    """The one that has staged rows of a batch: it is gone when they are merged."""
    output = run_and_kill(project, cluster, tmp_path / "points", ["target.begun:2"])
    assert "executors can't load" not in output, "the driver had to do it"
    assert "executors can't read chunks" not in output, "the driver had to do it"
    assert project.differences() == []
    assert project.new.query(LEFT) == []


@pytest.mark.long
def test_executors_killed_again_and_again_and_the_judge_on_the_cluster(
    project: Project, cluster: EmbeddedSparkCluster, tmp_path: Path
) -> None:
    kills = ["apply.read:2", "target.begun:3", "apply.read:4"]  # before a job, and behind one
    run_and_kill(project, cluster, tmp_path / "points", kills)
    assert project.differences() == []
    assert project.new.query(LEFT) == []
    assert "EQUAL" in ended_well(project, "verify", "--wait", "20")
