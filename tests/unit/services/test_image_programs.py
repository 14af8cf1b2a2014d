"""The two programs of the image, run here: which words reach what, and when a run counts as alive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

DOCKER = Path(__file__).parents[3] / "docker"
EXECUTOR = {
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_1": "-Dspark.a=two words",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@migrator:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "migrator-exec-3",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Programs that print their name and words, a line each, in the place of the image's."""
    for name in ("migrator", "alembic", "java"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        program.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    return tmp_path


def said(programs: Path, *words: str, **environment: str) -> list[str]:
    """The program that the entrypoint becomes, with its words."""
    path = {"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["sh", DOCKER / "entrypoint", *words], env={**path, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_words_are_a_command_of_the_tool(programs: Path) -> None:
    assert said(programs, "try", "orders", "--key", "a b") == ["migrator", "try", "orders", "--key", "a b"]
    assert said(programs, "--help") == ["migrator", "--help"]
    assert said(programs) == ["migrator"]


def test_alembic_is_reached_by_its_name(programs: Path) -> None:
    assert said(programs, "alembic", "history") == ["alembic", "history"]


def test_spark_gets_an_executor(programs: Path) -> None:
    words = said(programs, "executor", **EXECUTOR)
    assert words[:3] == ["java", "-Dspark.driver.port=7078", "-Dspark.a=two words"]
    assert words[words.index("-cp") + 1].endswith("pyspark/jars/*")
    assert "-Xmx1g" in words
    begins = words.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend") + 1
    options = dict(zip(words[begins::2], words[begins + 1 :: 2], strict=True))
    assert options == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.1.2.3",
        "--resourceProfileId": "0",
        "--podName": "migrator-exec-3",
    }


def healthy(file: Path, *words: str) -> bool:
    environment = {"PATH": "/usr/bin:/bin", "MIGRATOR_ALIVE_FILE": str(file)}
    return subprocess.run(["sh", DOCKER / "healthy", *words], env=environment).returncode == 0


def test_a_run_is_healthy_as_long_as_it_says_so(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    assert healthy(file), "another command, which says nothing"
    assert not healthy(file, "begun")
    file.touch()
    assert healthy(file)
    assert healthy(file, "begun")
    long_ago = time.time() - 3600
    os.utime(file, (long_ago, long_ago))
    assert not healthy(file)
    assert not healthy(file, "begun")
