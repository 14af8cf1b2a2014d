"""A Spark standalone cluster for the tests of one file: two workers of one core each."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.embedded.spark import EmbeddedSparkCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedSparkCluster]:
    """The cluster; it and every executor end with the file."""
    with (
        scratch_directory("migrator-cluster-") as folder,
        EmbeddedSparkCluster(folder / "cluster", java_home=java_home()) as started,
    ):
        yield started


def cluster_conf() -> dict[str, str]:
    """Options of a driver beside its workers; executors start as quickly as the tests' drivers do."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "").split()
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join(one for one in options if not one.startswith("-Dspark.")),
    }
