"""A server's knowledge of tables that a dump has just filled: statistics, and which rows everybody may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from migrator.model.table import TableId


class Upkeep(Protocol):
    """Brings this knowledge up to date, beside whoever writes the tables. Over connections of its own; one thread
    uses it.

    All methods raise ``ConnectionFailed`` and ``TargetError``.
    """

    def mirror(self) -> list[TableId]:
        """The tables that joined mappings read beside the target."""
        ...

    def lacking(self, table: TableId) -> bool:
        """Tells whether the server has never looked at the table, nor will do so soon by itself."""
        ...

    def refresh(self, table: TableId, stopped: Callable[[], bool]) -> str:
        """Has the server look at the table now; reads and writes of it go on meanwhile.

        Returns why that wasn't done, with the remedy, or nothing. ``stopped``: asked often; it ends the work.
        """
        ...
