"""Writes what joined targets give, part by part, together with the rows that were mapped before the transaction.

Parts are merged together as long as they are small, so that foreign keys between tables see one change. Once
they are many rows, each is written on its own, without looking at foreign keys, and the keys of whole tables
are checked at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from migrator.model.table import TableId
from migrator.ports.target import TargetRows

TOGETHER_ROWS = 50_000


class OfTable(Protocol):
    """Prepared rows of one target table."""

    @property
    def id(self) -> TableId:
        """The table."""
        ...


Rows = TypeVar("Rows", bound=OfTable)


class JoinedParts(ABC, Generic[Rows]):
    """One batch's joined rows. ``kept`` has, per table that is replaced, the temporary table of its keys."""

    def __init__(self) -> None:
        self.kept: dict[TableId, str] = {}

    @abstractmethod
    def relax(self) -> None:
        """Turns foreign keys off for all later writes."""

    @abstractmethod
    def prepare(self, rows: Sequence[TargetRows]) -> list[Rows]:
        """Encodes rows and finds their staging tables."""

    @abstractmethod
    def merge(self, rows: Sequence[Rows]) -> None:
        """Writes prepared rows."""

    @abstractmethod
    def keep_keys(self, rows: Rows) -> None:
        """Remembers the keys of a part of a table that is to hold these rows and no others."""

    @abstractmethod
    def empty(self, rows: Rows) -> None:
        """Empties the staging tables: the next part's rows of the same table take the same ones."""

    @abstractmethod
    def delete_others(self, table: TableId, kept: str) -> None:
        """Deletes the rows of a table whose keys weren't kept."""

    def write(self, mapped: Sequence[Rows], joined: Iterable[TargetRows]) -> bool:
        """Writes both; whether the keys of whole tables have to be checked afterwards."""
        waiting: list[TargetRows] = []
        apart = False
        for rows in joined:
            full = sum(map(_number, (*waiting, rows))) > TOGETHER_ROWS
            if waiting and (full or any(one.table.id == rows.table.id for one in waiting)):
                if not apart:
                    self.relax()
                apart = True
                self._write_part([], waiting)
                waiting = []
            waiting.append(rows)
        self._write_part(mapped, waiting)
        for table, keys in self.kept.items():
            self.delete_others(table, keys)
        return apart or bool(self.kept)

    def _write_part(self, mapped: Sequence[Rows], rows: Sequence[TargetRows]) -> None:
        prepared = [*mapped, *self.prepare(rows)] if rows else list(mapped)
        self.merge(prepared)
        replaced = {one.table.id for one in rows if one.replaces}
        for one in prepared:
            if one.id in replaced:
                self.keep_keys(one)
        for one in prepared if rows else ():
            self.empty(one)


def _number(rows: TargetRows) -> int:
    return sum(part.num_rows for part in (rows.chunk, rows.before, rows.after) if part is not None)
