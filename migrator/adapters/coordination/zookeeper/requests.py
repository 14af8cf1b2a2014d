"""Dump requests as one node of ZooKeeper, replaced under its version."""

from __future__ import annotations

import json
from collections.abc import Callable

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.errors import RequestError
from migrator.model.codecs.codec import requests_from_json, requests_to_json
from migrator.model.requests.request import RequestBook

_MOST_BYTES = 1_000_000
"""A server closes the connection of who sends more than 1 MiB (``jute.maxbuffer``), without a word."""


class ZooKeeperRequests:
    """A ``RequestStore``. Processes on any machine may use it at once.

    Args:
        session: of the migration.
    """

    def __init__(self, session: ZooKeeperSession):
        self._session = session
        self._path = session.path("requests")

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
        """The book and its version; -1 for none."""
        try:
            content, stat = self._session.ask(lambda client: client.get_async(self._path))
        except NoNodeError:
            return RequestBook(), -1
        try:
            return requests_from_json(json.loads(content)), stat.version
        except (ValueError, TypeError, RecursionError) as error:  # FormatError is a ValueError
            raise RequestError(
                "the dump requests can't be read",
                where=f"{self._session.address}/requests",
                cause=str(error),
                remedy="run the version of the tool that wrote them, or a newer one; or delete the node: requests are"
                " forgotten then, what they brought is not",
            ) from error

    def _written(self, book: RequestBook, version: int) -> bool:
        """Writes the requests; returns False when somebody else was faster."""
        content = json.dumps(requests_to_json(book), separators=(",", ":")).encode()
        if len(content) > _MOST_BYTES:
            raise RequestError(
                "the dump requests are too large for ZooKeeper",
                where=f"{self._session.address}/requests",
                cause=f"{len(content):,} bytes; a node holds {_MOST_BYTES:,}",
                remedy="list fewer keys at a time, or give a range or a predicate",
            )
        acl = self._session.acl
        try:
            if version < 0:
                self._session.ask(lambda client: client.create_async(self._path, content, acl=acl))
            else:
                self._session.ask(lambda client: client.set_async(self._path, content, version))
        except (BadVersionError, NodeExistsError, NoNodeError):
            return False
        return True
