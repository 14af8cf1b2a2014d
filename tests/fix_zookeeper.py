"""One ZooKeeper for all tests of a session; every test takes a path of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership
from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.model.coordination import Coordination

SESSION_S = 4.0
Contenders = Callable[[Coordination], ZooKeeperLeadership]


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[EmbeddedZooKeeper]:
    """The server."""
    with (
        scratch_directory("migrator-zookeeper-") as folder,
        EmbeddedZooKeeper(folder / "zk", java_home=java_home()) as server,
    ):
        yield server


@pytest.fixture
def ensemble_settings(zookeeper: EmbeddedZooKeeper) -> Coordination:
    """A path of the test's own."""
    return Coordination(zookeeper.hosts, f"/tests/{uuid.uuid4().hex}", SESSION_S)


@pytest.fixture
def contenders() -> Iterator[Contenders]:
    """Makes contenders for the migration ``shop``; all of them give up at the test's end."""
    made: list[ZooKeeperLeadership] = []

    def another(settings: Coordination) -> ZooKeeperLeadership:
        made.append(ZooKeeperLeadership(settings, "shop"))
        return made[-1]

    yield another
    for each in made:
        each.release()
