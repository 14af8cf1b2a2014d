"""The store of dump requests: commands write them, the leader follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from migrator.model.requests.request import RequestBook


class RequestStore(Protocol):
    """Holds one ``RequestBook``. Any number of processes may use it at once."""

    def read(self) -> RequestBook:
        """The book as of now; an empty one before the first update.

        Raises ``RequestError`` for one that is damaged or was written by a newer version, and another
        ``MigratorError`` when the store can't be reached.
        """
        ...

    def update(self, change: Callable[[RequestBook], RequestBook]) -> RequestBook:
        """Replaces the book by ``change(book)``, durably, and returns it; no other update comes in between.

        What ``change`` raises is passed on, and nothing is changed then. It may be called more than once. Raises as
        ``read`` does.
        """
        ...
