"""A target behind another one: what stands in front of it changes a few of its methods, and passes the others on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror
from migrator.ports.target import OrphansAside, Target, TargetBatch, TargetRows


class PassedOn:
    """A ``ports.target.Target`` that passes everything on to another one."""

    def __init__(self, target: Target):
        self._target = target

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """See the port."""
        return self._target.preflight(tables, beside)

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """See the port."""
        return self._target.tables(names)

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """See the port."""
        return self._target.holds(table)

    def refused(self, table: TargetTable, rows: Any, untried: Collection[str] = ()) -> TargetError | None:
        """See the port."""
        return self._target.refused(table, rows, untried)

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """See the port."""
        self._target.prepare_mirror(targets)

    def open(self, epoch: int) -> Ledger:
        """See the port."""
        return self._target.open(epoch)

    def apply(self, batch: TargetBatch) -> None:
        """See the port."""
        self._target.apply(batch)

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """See the port."""
        self._target.fill(piece)

    def set_orphans_aside(self, orphans: OrphansAside) -> None:
        """See the port."""
        self._target.set_orphans_aside(orphans)

    def close(self) -> None:
        """See the port."""
        self._target.close()
