"""A database in one process whose commits reach the log before they become visible, scheduled by a seed.

Small and pessimistic: any commit may stay in the gap between log and visibility for as long as the seed likes, as on
PostgreSQL with a slow synchronous standby or MySQL with semi-sync AFTER_SYNC. ``ordered=True`` models MySQL with
``binlog_order_commits=ON``: commits become visible in log order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import (
    LogProgress,
    LogRecord,
    MarkKind,
    Operation,
    Row,
    RowChange,
    TransactionId,
    TransactionPart,
    WatermarkSeen,
)
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema

TABLE = TableId("s", "t")
SCHEMA = TableSchema(
    TABLE, (Column("k", "string", False, "text"), Column("v", "string", True, "text")), ("k",)
)


def position(order: int) -> Position:
    return Position(order, str(order))


@dataclass(frozen=True)
class SeenSet:
    """An exact witness: the transactions visible to the read view."""

    ids: frozenset[TransactionId]

    def contains(self, transaction: TransactionId) -> bool:
        return transaction in self.ids


@dataclass
class Commit:
    """One transaction in the log. ``rows`` maps key -> value or None (deleted)."""

    order: int
    rows: dict[str, str | None]
    before: dict[str, str | None]
    mark: WatermarkSeen | None = None

    def records(self, part_rows: int) -> list[LogRecord]:
        if self.mark is not None:
            return [self.mark, LogProgress(position(self.order))]
        changes = [self._change(key) for key in self.rows]
        cuts = range(0, len(changes), part_rows)
        return [
            TransactionPart(
                (self.order,),
                position(self.order),
                self.order,
                at,
                tuple(changes[at : at + part_rows]),
                at == cuts[-1],
            )
            for at in cuts
        ]

    def _change(self, key: str) -> RowChange:
        old, new = self.before[key], self.rows[key]
        before: Row | None = None if old is None else (key, old)
        after: Row | None = None if new is None else (key, new)
        if before is None:
            return RowChange(TABLE, Operation.INSERT, None, after)
        kind = Operation.DELETE if after is None else Operation.UPDATE
        return RowChange(TABLE, kind, before, after)


@dataclass
class Engine:
    """The source: a log, what of it is visible, and row locks that are held until a commit is visible."""

    rng: random.Random
    keys: list[str]
    ordered: bool = False
    log: list[Commit] = field(default_factory=list)
    hidden: list[Commit] = field(default_factory=list)
    logged: dict[str, str] = field(default_factory=dict)
    visible: dict[str, str] = field(default_factory=dict)
    visible_ids: set[TransactionId] = field(default_factory=set)

    def seed_rows(self) -> None:
        for key in self.keys[::2]:
            self.logged[key] = self.visible[key] = "0"

    def write(self) -> None:
        """A client commits: the log has it at once, readers see it when ``reveal`` says so."""
        locked = {key for commit in self.hidden for key in commit.rows}
        free = [key for key in self.keys if key not in locked]
        if not free:
            return
        chosen = self.rng.sample(free, min(len(free), self.rng.choice((1, 1, 2, 3))))
        order = len(self.log) + 1
        rows: dict[str, str | None] = {}
        for key in chosen:
            gone = key in self.logged and self.rng.random() < 0.25
            rows[key] = None if gone else str(order)
        rows = {key: value for key, value in rows.items() if value is not None or key in self.logged}
        self._log(Commit(order, rows, {key: self.logged.get(key) for key in rows}))

    def mark(self, token: str, kind: MarkKind) -> None:
        """A watermark commits; it may become visible late like any other transaction, which nobody notices."""
        self._log(Commit(len(self.log) + 1, {}, {}, WatermarkSeen(token, kind)))
        if self.ordered:
            self.reveal(len(self.hidden))  # on return of its commit it is visible, and so is all before it

    def _log(self, commit: Commit) -> None:
        self.log.append(commit)
        self.hidden.append(commit)
        for key, value in commit.rows.items():
            _set(self.logged, key, value)

    def reveal(self, number: int = 1) -> None:
        """Some logged commits become visible."""
        for _ in range(min(number, len(self.hidden))):
            commit = self.hidden.pop(0 if self.ordered else self.rng.randrange(len(self.hidden)))
            self.visible_ids.add((commit.order,))
            for key, value in commit.rows.items():
                _set(self.visible, key, value)

    def select(self, request: ChunkRequest) -> Chunk:
        after = request.after[0] if request.after else None
        found = [
            (key, self.visible[key]) for key in sorted(self.visible) if after is None or key > str(after)
        ]
        rows = found[: request.limit_rows]
        return Chunk(
            request,
            rows,
            len(rows),
            (rows[-1][0],) if rows else None,
            len(rows) < request.limit_rows,
            SeenSet(frozenset(self.visible_ids)),
            position(len(self.log)),
            SCHEMA.version(),
        )


def _set(rows: dict[str, str], key: str, value: str | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
