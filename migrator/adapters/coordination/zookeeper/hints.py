"""The leader's progress hint as a node of ZooKeeper."""

from __future__ import annotations

from dataclasses import replace

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.node import MOST_BYTES, Node, encoded
from migrator.model.codecs.hint_codec import hint_of, hint_to_json
from migrator.model.hint import Hint


class ZooKeeperHints:
    """A ``Hints``.

    Args:
        session: of the migration.
    """

    def __init__(self, session: ZooKeeperSession):
        self._node = Node(session, "progress")

    def publish(self, hint: Hint) -> None:
        """Replaces the hint. Raises ``ConnectionFailed``."""
        content = encoded(hint_to_json(hint))
        if (
            len(content) > MOST_BYTES
        ):  # many thousands of tables: the ledger knows the checkpoint, a batch later
            content = encoded(hint_to_json(replace(hint, checkpoint=None)))
        self._node.write(content)  # or somebody else's was faster: the next one replaces it

    def read(self) -> Hint | None:
        """The last hint. Raises ``ConnectionFailed``."""
        content, _ = self._node.read()
        return None if content is None else hint_of(content)
