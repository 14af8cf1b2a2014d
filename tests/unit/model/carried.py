"""A ledger in memory, and runs that begin and apply a batch with one mapping after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.adapters.targets.shared.identities import Identities
from migrator.errors import MappingError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Mapped, TableDump, TableIdentity
from migrator.model.requests.request import WHOLE, Doubt, RequestBook, Scope
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.lead.carried import LateTargets, carry_over, unmirrored
from transforms.analysis.plan import MappingKind

T, U, V = (TableId("s", name) for name in "tuv")
DUMPED = Checkpoint(
    Position(7, "7"), dumps=(TableDump(T, done=True), TableDump(U, chunks=1), TableDump(V)), fed=()
)


def plans(**targets: tuple[TableId, ...]) -> dict[str, Any]:
    """Row-wise ones; those whose names begin with j are joined."""
    kinds = {True: MappingKind.GRAIN, False: MappingKind.ROW_WISE}
    return {
        name: SimpleNamespace(
            kind=kinds[name.startswith("j")],
            reaches=(),
            schemas={table.name: SimpleNamespace(id=table, names=list) for table in tables},
        )
        for name, tables in targets.items()
    }


def brought(name: str) -> TargetRows:
    """A row for a target."""
    table = TargetTable(TableId("new", name), (), ())
    return TargetRows(table, None, None, SimpleNamespace(num_rows=1), strict_inserts=False)


class Target:
    """The ledger's checkpoint, which tables have rows, and which joined ones are to be filled anew."""

    def __init__(self, checkpoint: Checkpoint | None = DUMPED) -> None:
        self.checkpoint = checkpoint
        self.book = RequestBook()
        self.rows: set[str] = set()
        self.mapped: dict[str, str] = {}
        self.accepted: frozenset[str] = frozenset()
        self.schema = "new"
        self.columns: tuple[str, ...] = ("k",)
        self.content, self.basis, self.outline = "", "", ""
        self.forgotten: list[str] = []
        self.filled: set[str] = set()
        self.kept: list[tuple[str, str]] = []
        self.warnings: tuple[str, ...] = ()
        self.identities: dict[str, TableIdentity] = {}
        self.identity_stays = True
        self.alone = True
        self.besides: frozenset[str] = frozenset()
        self.begun: list[tuple[str, tuple[TableId, ...]]] = []

    def run(self, *, empty: bool = False, **targets: tuple[TableId, ...]) -> None:
        """A run with this mapping, which applies a batch."""
        carried = self.begin(**targets)
        self.warnings = carried.warnings
        last = self.checkpoint or DUMPED
        rows = () if empty else tuple(brought(name) for name in targets)
        batch = TargetBatch(1, replace(last, fed=None, awaited=(), mapped=None), rows)
        self.apply(carried.noted(batch), set() if empty else {*targets})

    def apply(self, batch: TargetBatch, come: set[str], gone: str = "") -> None:
        """What a target's writer does with the ledger: of a new leader each time."""
        identities = Identities()
        identities.begun(batch, self.checkpoint, self.rows.intersection, "target")
        self.rows = (self.rows | come) - {gone}
        mapped = identities.holding(batch, (), self.rows.intersection)
        self.checkpoint = replace(batch.checkpoint, mapped=mapped)

    def make_again(self, name: str) -> None:
        """Somebody drops a table and makes it again."""
        self.identities[name] = TableIdentity(f"after {self.identities[name].table}", "ledger")
        self.rows.discard(name)

    def put_back(self, name: str) -> None:
        """The table is the one that it was, with its rows."""
        self.identities[name] = TableIdentity(name, "ledger")
        self.rows.add(name)

    def begin(self, **targets: tuple[TableId, ...]) -> Any:
        def forget(name: str) -> bool:
            self.forgotten.append(name)
            return True

        late = LateTargets(
            lambda name: name in self.rows,
            forget,
            self.accepted,
            identity_stays=self.identity_stays,
            keep=lambda act, detail: self.kept.append((act, detail)),
            filled=lambda: self.filled,
            besides=self.besides,
            begin=self.ask_beside,
            alone=lambda: self.alone,
        )
        mapped = (
            Mapped(
                name,
                self.schema,
                self.mapped.get(name, "1"),
                self.columns,
                self.content,
                self.basis,
                self.identities.get(name),
                outline=self.outline,
            )
            for name in targets
        )
        return carry_over(self.checkpoint, lambda: self.book, plans(**targets), late, tuple(mapped))

    def ask_beside(self, name: str, tables: Sequence[TableId]) -> None:
        self.begun.append((name, tuple(tables)))
        self.rows.discard(name)
        self.ask(*tables)

    def ask(self, *tables: TableId, scope: Scope = WHOLE, doubts: tuple[Doubt, ...] = ()) -> str:
        self.book = self.book.start(tables, scope, doubts)
        return self.book.requests[-1].name()

    def once_more(self, **targets: tuple[TableId, ...]) -> frozenset[TableId]:
        return unmirrored(self.checkpoint, plans(**targets).values())

    def refuses(self, where: str, **targets: tuple[TableId, ...]) -> str:
        with pytest.raises(MappingError) as caught:
            self.begin(**targets)
        assert where in caught.value.where
        return caught.value.remedy
