"""The leader's progress hint as a node of ZooKeeper."""

from __future__ import annotations

import json
from dataclasses import replace

from kazoo.exceptions import NodeExistsError, NoNodeError

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.model.codecs.hint_codec import hint_of, hint_to_json
from migrator.model.hint import Hint

_MOST_BYTES = 1_000_000


class ZooKeeperHints:
    """A ``Hints``.

    Args:
        session: of the migration.
    """

    def __init__(self, session: ZooKeeperSession):
        self._session = session
        self._path = session.path("progress")

    def publish(self, hint: Hint) -> None:
        """Replaces the hint. Raises ``ConnectionFailed``."""
        content = _encoded(hint)
        if (
            len(content) > _MOST_BYTES
        ):  # many thousands of tables: the ledger knows the checkpoint, a batch later
            content = _encoded(replace(hint, checkpoint=None))
        try:
            self._session.ask(lambda client: client.set_async(self._path, content))
        except NoNodeError:
            try:
                self._session.ask(
                    lambda client: client.create_async(self._path, content, acl=self._session.acl)
                )
            except NodeExistsError:
                return  # somebody else's: the next one replaces it

    def read(self) -> Hint | None:
        """The last hint. Raises ``ConnectionFailed``."""
        try:
            content, _ = self._session.ask(lambda client: client.get_async(self._path))
        except NoNodeError:
            return None
        return hint_of(content)


def _encoded(hint: Hint) -> bytes:
    return json.dumps(hint_to_json(hint), separators=(",", ":")).encode()
