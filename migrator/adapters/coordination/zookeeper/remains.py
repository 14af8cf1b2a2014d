"""Remains of a migration in ZooKeeper."""

from __future__ import annotations

from collections.abc import Sequence

from kazoo.exceptions import NoNodeError

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.ports.remains import Found, Kind, Left

_NODES = {"requests": "dump requests", "progress": "what the leader told of itself last"}


class ZooKeeperRemains:
    """``ports.remains.Remains``. The number of the epoch stays: a leader that sleeps must never have the higher one.

    Args:
        session: of the migration.
    """

    def __init__(self, session: ZooKeeperSession):
        self._session = session

    def found(self) -> Found:
        """See the port."""
        left = []
        for name, said in _NODES.items():
            path = self._session.path(name)
            if self._session.ask(lambda client, path=path: client.exists_async(path)) is not None:  # type: ignore[misc]
                left.append(Left(Kind.ASKED, name, f"node {name}: {said}"))
        kept = [
            "node epoch: no leader of before may have a higher one than the next",
            "state folders of other machines: remove them there, else a run there may stop at its old event log",
        ]
        return Found(f"ZooKeeper {self._session.address}", tuple(left), tuple(kept if left else ()))

    def remove(self, lefts: Sequence[Left]) -> None:
        """See the port."""
        for left in lefts:
            path = self._session.path(left.name)
            try:
                self._session.ask(lambda client, path=path: client.delete_async(path))  # type: ignore[misc]
            except NoNodeError:
                continue
