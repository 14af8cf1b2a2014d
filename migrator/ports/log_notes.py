"""Notes that a log reader wants to be told again when the log is read on from a later place, perhaps by another
process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from migrator.model.table import TableId

Notes = tuple[tuple[TableId, str], ...]
RENAMED = "renamed"
"""The part of a note, where it is a JSON object, that tells old and new names of columns: the one part that isn't the
adapter's affair alone, since copies of the rows that others keep have the old names."""
Renamed = tuple[tuple[str, str], ...]
"""Old and new names of columns that kept their values, in the order in which they were given."""


def renamed_in(notes: Notes) -> dict[TableId, Renamed]:
    """Returns which columns of each table got another name."""
    found: dict[TableId, Renamed] = {}
    for table, text in notes:
        parts = json.loads(text or "{}")
        if isinstance(parts, dict) and parts.get(RENAMED):
            found[table] = tuple((old, new) for old, new in parts[RENAMED])
    return found


def with_renamed(known: Iterable[Sequence[str]], more: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Returns what is noted of names once these were given as well; a pair is noted once."""
    noted = [list(pair) for pair in known]
    return noted + [list(pair) for pair in more if list(pair) not in noted]


def earlier_names(renamed: Renamed, name: str) -> Iterator[str]:
    """Yields the names that a column had before, the latest first."""
    for old, new in reversed(renamed):
        if new == name:
            name = old
            yield name


class LogNotes:
    """A text for each table that has one: the adapter's affair. Capture keeps them with every checkpoint.

    The log reader's thread notes, capture's thread keeps: one reference, assigned at once.
    """

    def __init__(self) -> None:
        self._texts: dict[TableId, str] = {}
        self._given_up: dict[TableId, str] = {}
        self._asked: frozenset[TableId] = frozenset()
        self._answered: frozenset[TableId] = frozenset()
        self._replaced: frozenset[TableId] = frozenset()
        self._consented: frozenset[TableId] = frozenset()

    def begin(
        self,
        kept: Iterable[tuple[TableId, str]],
        asked: Iterable[TableId] = (),
        answered: Iterable[TableId] = (),
        consented: Iterable[TableId] = (),
    ) -> None:
        """Takes the notes of the checkpoint that is gone on from. Called before the log reader is started.

        ``asked``: tables whose rows somebody has asked for since. What they had noted is given up. ``answered``:
        those of them whose rows will all be read again. ``consented``: tables whose rows may all be read again if
        others have their names now.
        """
        self._asked, self._answered, self._replaced = frozenset(asked), frozenset(answered), frozenset()
        self._consented = frozenset(consented)
        noted = dict(kept)
        self._given_up = {table: text for table, text in noted.items() if table in self._asked}
        self._texts = {table: text for table, text in noted.items() if table not in self._asked}

    def note(self, table: TableId, text: str) -> None:
        """Keeps a note for the table from now on; an empty text is as none."""
        if self._texts.get(table, "") != text:
            self._texts = {**self._texts, table: text}

    def asked_for(self, table: TableId) -> bool:
        """Tells whether the table's rows are to be read again: what came before this reader is of no interest
        then."""
        return table in self._asked

    def answered(self, table: TableId) -> bool:
        """Tells whether all of the table's rows are to be read again."""
        return table in self._answered

    def settle(self, table: TableId) -> None:
        """Ends a table's answer: the rows asked for bring all that the log has so far, and nothing that comes
        later."""
        self._answered -= {table}

    def given_up(self, table: TableId) -> str:
        """Returns what the table had noted before somebody asked for its rows; empty if nothing."""
        return self._given_up.get(table, "")

    def consented(self, table: TableId) -> bool:
        """Tells whether another table may have the name when the log begins to be read: all rows of it will be
        read."""
        return table in self._consented

    def replace(self, table: TableId) -> None:
        """Marks a table as replaced by another of its name, which will be read as a whole: rows dumped already must
        go first. What was noted of the former one is given up."""
        self._replaced |= {table}
        self._asked |= {table}
        if table in self._texts:
            self._given_up = {**self._given_up, table: self._texts[table]}
            self._texts = {other: text for other, text in self._texts.items() if other != table}

    def begun(self) -> None:
        """Ends all consent: the log is being read. Whatever is replaced from now on, capture has to hear of."""
        self._consented = frozenset()

    def replaced(self) -> frozenset[TableId]:
        """The tables of which that was said since ``begin``."""
        return self._replaced

    def of(self, table: TableId) -> str:
        """The table's text, or none."""
        return self._texts.get(table, "")

    def kept(self) -> Notes:
        """Returns the notes that a checkpoint should have now."""
        return tuple(sorted((table, text) for table, text in self._texts.items() if text))
