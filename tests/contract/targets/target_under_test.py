"""A target that the contract is run against: its tables, and a writer that numbers its batches.

The tables, keys first: ``item(id, name, quantity)``; ``person(id, email unique)``; ``note(id, item_id -> item)``;
``kept(id, name, extra default 'kept')``, of which the mapping writes only ``id`` and ``name``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pytest

from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from migrator.ports.target import Target, TargetBatch, TargetRows

Rows = Sequence[tuple[Any, ...]]
COLUMNS = {
    "item": (("id", pa.int64()), ("name", pa.string()), ("quantity", pa.int32())),
    "person": (("id", pa.int64()), ("email", pa.string())),
    "note": (("id", pa.int64()), ("item_id", pa.int64())),
    "kept": (("id", pa.int64()), ("name", pa.string())),
}


class TargetUnderTest(Protocol):
    """One target database with the tables above, empty."""

    ledger: str
    mirror: str
    history: str
    """Quoted names of the ledger's table, of that which says what the mirror filled, and of the history's."""

    def target(self, lock_wait_s: int = 30) -> Target:
        """Another writer on the same database and migration, not opened yet."""

    def peek(self) -> Ledger | None:
        """The ledger as it is seen from outside a run."""

    def filled(self) -> list[tuple[str, int]]:
        """The joined targets that were filled, as seen from outside a run."""

    def forget_filled(self, target: str, lock_wait_s: int = 30) -> bool:
        """Makes the run fill a target anew, from outside of it."""

    def execute(self, *statements: str) -> None:
        """Changes the database beside the writer."""

    def locked(self, table: str) -> AbstractContextManager[None]:
        """Keeps a whole table from everybody else."""

    def drop_mirror(self) -> None:
        """Removes everything that belongs to the mirror."""

    def mirror_shape(self) -> list[tuple[Any, ...]]:
        """Tables, columns with types, and indexes of the mirror."""

    def rival(self) -> AbstractContextManager[Any]:
        """Another session, in a transaction, which the server doesn't choose to end for a deadlock."""

    def await_waiting(self, session: Any) -> None:
        """Returns once the server has a session wait for a lock."""

    def crossed_by_the_mirror(self) -> tuple[str, str, str]:
        """Makes rows that the mirror's making changes; returns what crosses it.

        A part of the statement by which it takes a first lock, what takes the second before it, and what asks for
        the first then.
        """

    def end_session(self, session: Any) -> None:
        """Has the server end a writer's session, and waits until it is gone."""

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All columns of all rows, by key, read beside the writer."""


def checkpoint(order: int, done: bool = True) -> Checkpoint:
    """A checkpoint whose only dump is done or not."""
    dump = TableDump(TableId("old", "item"), after=("k", b"\x00", None), done=done, rows=order)
    return Checkpoint(Position(order, f"token/{order}"), unconfirmed=((order,),), dumps=(dump,))


def arrow(table: str, rows: Rows | None) -> pa.Table | None:
    """Rows as mapped, or None."""
    if rows is None:
        return None
    columns = COLUMNS[table]
    arrays = [pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(columns)]
    return pa.table(arrays, names=[name for name, _ in columns])


class Applier:
    """A writer that has the epoch, and numbers its batches."""

    def __init__(self, place: TargetUnderTest, epoch: int = 1):
        self.target = place.target()
        self.ledger = self.target.open(epoch)
        self.tables = {table.id.name: table for table in self.target.tables(list(COLUMNS))}
        self.segment = self.ledger.segment

    def part(
        self,
        table: str,
        *,
        chunk: Rows | None = None,
        before: Rows | None = None,
        after: Rows | None = None,
        strict: bool = False,
        doubted: Sequence[int] = (),
        emptied: bool = False,
    ) -> TargetRows:
        """One table's share of a batch."""
        dumped, old, new = (arrow(table, side) for side in (chunk, before, after))
        unsure = pa.table({"id": pa.array(doubted, pa.int64())}) if doubted else None
        return TargetRows(self.tables[table], dumped, old, new, strict, doubted=unsure, emptied=emptied)

    def apply(self, *parts: TargetRows, done: bool = True, requested: bool | None = None) -> None:
        """The next batch; ``requested``: a dump request is open, and its last row read or not."""
        place = checkpoint(self.segment + 1, done)
        if requested is not None:
            dump = TableDump(TableId("old", "item"), done=requested, request="r1.1")
            place = replace(place, requests=(dump,))
        self.target.apply(TargetBatch(self.segment + 1, place, parts))
        self.segment += 1


class AppliedTarget:
    """Subclasses provide the fixture ``place``."""

    @pytest.fixture
    def place(self) -> Iterable[TargetUnderTest]:
        """The target under test."""
        raise AssertionError("a subclass must say how to make a target")

    @pytest.fixture
    def applier(self, place: TargetUnderTest) -> Iterable[Applier]:
        """A writer with epoch 1."""
        applier = Applier(place)
        yield applier
        applier.target.close()
        applier.target.close()  # twice is safe
