"""Dump requests as one node of ZooKeeper, replaced under its version."""

from __future__ import annotations

import json
from collections.abc import Callable

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.node import MOST_BYTES, Node, encoded
from migrator.errors import RequestError
from migrator.model.codecs.codec import requests_from_json, requests_to_json
from migrator.model.requests.request import RequestBook


class ZooKeeperRequests:
    """A ``RequestStore``. Processes on any machine may use it at once.

    Args:
        session: of the migration.
    """

    def __init__(self, session: ZooKeeperSession):
        self._node = Node(session, "requests")

    def read(self) -> RequestBook:
        """The book as of now. Raises ``RequestError`` naming the node when it can't be understood."""
        return self._read()[0]

    def update(self, change: Callable[[RequestBook], RequestBook]) -> RequestBook:
        """Replaces the book (see the port). ``ConnectionFailed`` leaves open whether it was."""
        while True:
            old, version = self._read()
            new = change(old)
            if new == old or self._written(new, version):
                return new

    def _read(self) -> tuple[RequestBook, int]:
        """The book and the node's version."""
        content, version = self._node.read()
        if content is None:
            return RequestBook(), version
        try:
            return requests_from_json(json.loads(content)), version
        except (ValueError, TypeError, RecursionError) as error:  # FormatError is a ValueError
            raise RequestError(
                "the dump requests can't be read",
                where=self._node.address,
                cause=str(error),
                remedy="run the version of the tool that wrote them, or a newer one; or delete the node: requests are"
                " forgotten then, what they brought is not",
            ) from error

    def _written(self, book: RequestBook, version: int) -> bool:
        """Writes the requests; returns False when somebody else was faster."""
        content = encoded(requests_to_json(book))
        if len(content) > MOST_BYTES:
            raise RequestError(
                "the dump requests are too large for ZooKeeper",
                where=self._node.address,
                cause=f"{len(content):,} bytes; a node holds {MOST_BYTES:,}",
                remedy="list fewer keys at a time, or give a range or a predicate",
            )
        return self._node.write(content, version)
