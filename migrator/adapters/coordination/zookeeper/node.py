"""A node of ZooKeeper that holds one document."""

from __future__ import annotations

import json
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession

MOST_BYTES = 1_000_000
"""A server closes the connection of who sends more than 1 MiB (``jute.maxbuffer``), without a word."""
NO_NODE = -1
"""The version of a node that isn't there."""
ANY = -2
"""Stands for whatever version a node has."""


class Node:
    """The node of a name in a migration. Every method raises ``ConnectionFailed``.

    Args:
        session: of the migration.
        name: of the node.
    """

    def __init__(self, session: ZooKeeperSession, name: str):
        self._session = session
        self._path = session.path(name)
        self.address = f"{session.address}/{name}"

    def read(self) -> tuple[bytes | None, int]:
        """The content and its version; None and ``NO_NODE`` while there is no such node."""
        try:
            content, stat = self._session.ask(lambda client: client.get_async(self._path))
        except NoNodeError:
            return None, NO_NODE
        return content, int(stat.version)

    def write(self, content: bytes, version: int = ANY) -> bool:
        """Replaces the content of that version, or makes the node; False where somebody else was faster."""
        try:
            if version != NO_NODE:
                expected = -1 if version == ANY else version
                try:
                    self._session.ask(lambda client: client.set_async(self._path, content, expected))
                    return True
                except NoNodeError:
                    if version != ANY:
                        return False
            acl = self._session.acl
            self._session.ask(lambda client: client.create_async(self._path, content, acl=acl))
        except (BadVersionError, NodeExistsError, NoNodeError):
            return False
        return True


def encoded(document: Any) -> bytes:
    """A document as the content of a node."""
    return json.dumps(document, separators=(",", ":")).encode()
