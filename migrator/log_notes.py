"""What a log reader wants to be told again when the log is read on from a later place, perhaps by another process."""

from __future__ import annotations

from collections.abc import Iterable

from migrator.model.table import TableId

Notes = tuple[tuple[TableId, str], ...]


class LogNotes:
    """A text for each table that has one: the adapter's affair. Capture keeps them with every checkpoint.

    The log reader's thread notes, capture's thread keeps: one reference, assigned at once.
    """

    def __init__(self) -> None:
        self._texts: dict[TableId, str] = {}
        self._asked: frozenset[TableId] = frozenset()

    def begin(self, kept: Iterable[tuple[TableId, str]], asked: Iterable[TableId] = ()) -> None:
        """What the checkpoint has that is gone on from. Before the log reader is started.

        ``asked``: tables whose rows somebody has asked for since. What they had noted is given up.
        """
        self._asked = frozenset(asked)
        self._texts = {table: text for table, text in kept if table not in self._asked}

    def note(self, table: TableId, text: str) -> None:
        """From now on this is kept for the table; an empty text is as none."""
        if self._texts.get(table, "") != text:
            self._texts = {**self._texts, table: text}

    def asked_for(self, table: TableId) -> bool:
        """Whether its rows are to be read again, so that what came before this reader is of no interest."""
        return table in self._asked

    def of(self, table: TableId) -> str:
        """The table's text, or none."""
        return self._texts.get(table, "")

    def kept(self) -> Notes:
        """What a checkpoint should have now."""
        return tuple(sorted((table, text) for table, text in self._texts.items() if text))
