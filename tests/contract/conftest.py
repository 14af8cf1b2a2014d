"""A ZooKeeper for all contract tests of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.embedded.zookeeper import EmbeddedZooKeeper


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[EmbeddedZooKeeper]:
    with (
        scratch_directory("migrator-zookeeper-") as folder,
        EmbeddedZooKeeper(folder / "zk", java_home=java_home()) as server,
    ):
        yield server
