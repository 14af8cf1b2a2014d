"""The order in which a batch's rows get into the target, and when foreign keys are looked at: the same on each
engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from migrator.adapters.targets.shared.mirror.keeper import MirrorKeeper
from migrator.adapters.targets.shared.target_writer import PreparedT, SessionT, StructureT, TargetWriter
from migrator.model.progress import Filling
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import OrphansAside, TargetBatch, TargetRows


class RowsWriter(Protocol):
    """The statements of one batch's rows, in the open transaction."""

    def empty(self, tables: Sequence[TableId]) -> None:
        """Deletes all their rows."""

    def check_foreign_keys(self) -> None:
        """Checks every foreign key of all target tables. Raises ``TargetError`` naming key and value."""

    def set_orphans_aside(self) -> None:
        """Takes out, at the end, the rows whose foreign keys were found to point at nothing."""


RowsT = TypeVar("RowsT", bound=RowsWriter)


class MergingTarget(
    TargetWriter[SessionT, StructureT, PreparedT], Generic[SessionT, StructureT, PreparedT, RowsT]
):
    """A target's writer whose engine says by which statements rows are written.

    ``loose``, below: children may be there before their parents, so that no single table's foreign keys are held
    against its rows.
    """

    _mirrors: MirrorKeeper[SessionT, Any]

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """Makes what these targets need of the mirror (see ``ports.target``). Only after ``open``."""
        self._identities.joined(targets)
        with self._undone_by_failure():
            self._make_mirror(self._connected(), targets)

    @abstractmethod
    def _make_mirror(self, session: SessionT, targets: Sequence[JoinedTarget]) -> None:
        """Makes what is missing of the mirror, and commits it."""

    @abstractmethod
    def _rows_writer(self, session: SessionT, orphans: OrphansAside | None, loose: bool) -> RowsT:
        """Returns what writes one batch's rows."""

    @abstractmethod
    def _write_rows(self, session: SessionT, writer: RowsT, prepared: list[PreparedT], loose: bool) -> None:
        """Writes a batch without joined targets."""

    @abstractmethod
    def _write_joined(
        self,
        session: SessionT,
        writer: RowsT,
        prepared: list[PreparedT],
        joined: Iterator[TargetRows],
        loose: bool,
    ) -> bool:
        """Writes a batch with joined targets; returns whether all foreign keys must be looked at in the end."""

    def _merge_staged(self, session: SessionT, writer: RowsT, batch: TargetBatch) -> None:
        """Merges what executors have staged; none do, unless the engine says so."""

    def _merge(
        self,
        session: SessionT,
        batch: TargetBatch,
        prepared: list[PreparedT],
        partial: bool,
        orphans: OrphansAside | None,
    ) -> tuple[Filling, ...]:
        emptied = [rows.table.id for rows in batch.rows if rows.emptied]
        dumping, wholly = batch.checkpoint.dumping(), bool(partial or emptied)
        loose = wholly or dumping
        writer = self._rows_writer(session, orphans, loose)
        writer.empty(emptied)
        self._merge_staged(session, writer, batch)
        filling: tuple[Filling, ...] = ()
        if batch.joined is None:
            self._write_rows(session, writer, prepared, loose)
        else:
            mirror = self._mirrors.moved(session, batch)
            self._step("target.mirrored")
            joined = batch.joined(mirror)
            wholly = self._write_joined(session, writer, prepared, joined, loose) or wholly
            filling = self._mirrors.filling(mirror)
        if not dumping and not filling:  # until then children may be there before their parents
            if wholly:
                writer.check_foreign_keys()
            writer.set_orphans_aside()
        return filling
