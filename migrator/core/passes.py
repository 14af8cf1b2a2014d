"""The dumps whose rows a batch holds: of each table, those of one dump only.

Why: dump rows of one dump never repeat a key, so a batch may merge them without asking which of two is newer, and a
key that the mapping returns twice is an error of the mapping. Two dumps of one table, or a dump that was
begun anew, do repeat keys. So a batch begins anew wherever a table's dump rows change hands.
"""

from __future__ import annotations

from collections.abc import Iterable

from migrator.model.table import TableId

FIRST = ""
"""Name of a table's first dump."""


class Passes:
    """The dump of which each table has got rows since the last segment that begins a batch.

    Args:
        known: as ``Checkpoint.passes`` has it; None: only first dumps can have brought any.
    """

    def __init__(self, known: Iterable[tuple[TableId, str]] | None):
        self._names = None if known is None else dict(known)

    def admits(self, table: TableId, name: str) -> bool:
        """Tells whether rows of this dump may come into the batch that is being collected."""
        if self._names is None:
            return name == FIRST
        return self._names.get(table, name) == name

    def note(self, table: TableId, name: str) -> None:
        """Rows of this dump were delivered."""
        if self._names is not None:
            self._names[table] = name

    def begin(self) -> None:
        """A batch begins with the segment that is being collected, which holds nothing yet."""
        self._names = {}

    def known(self) -> tuple[tuple[TableId, str], ...] | None:
        """Returns the names to be stored in the checkpoint; None where only first dumps can have brought rows."""
        return None if self._names is None else tuple(self._names.items())
