"""Sets rows aside that the target refuses, where the project asks for it.

What stands here decorates a target. A batch is tried as it is; where the target refuses one row for what it holds, it
is tried again without that row: each try is a transaction of its own, and none but the last one is committed. The
records of the rows set aside go with the batch into the ledger. So every committed state is what the mapping makes
of one source state, without exactly the keys that the same ledger names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrator.columnar.bad_rows import cut, here, set_aside, still_bad
from migrator.errors import RowRefused, TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.progress import BadRow
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror
from migrator.ports.target import Target, TargetBatch, TargetRows
from migrator.run.steps import Step, no_step

_REASON = 500
_NAMED = 10


def with_rows_aside(target: Target, limits: ApplyLimits, step: Step = no_step) -> Target:
    """The target as the pipeline takes it; the same one where a refused row stops the run."""
    return AsideTarget(target, limits, step) if limits.bad_rows == SET_ASIDE else target


class AsideTarget:
    """``ports.target.Target`` that sets aside rows which another one refuses.

    Args:
        target: what writes.
        limits: how many rows may go aside.
        step: called at the point ``target.refused``.
    """

    def __init__(self, target: Target, limits: ApplyLimits, step: Step = no_step):
        self._target, self._limits, self._step = target, limits, step
        self._held: tuple[BadRow, ...] = ()
        self._in_run = 0

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """See the port; also what can't be set aside in yet."""
        found = self._target.preflight(tables, beside)
        if any(finding.fatal for finding in found):
            return found
        return [*found, *_not_yet(self._target.tables(tables), beside)]

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
        ledger = self._target.open(epoch)
        self._held = () if ledger.checkpoint is None else ledger.checkpoint.bad_rows
        return ledger

    def apply(self, batch: TargetBatch) -> None:
        """See the port, but that rows may go aside. Raises ``TargetError`` where more would than may."""
        known = {one.target for one in self._held}
        bad: tuple[BadRow, ...] = ()
        tried = replace(
            batch, rows=tuple(_here(rows) if rows.table.id.name in known else rows for rows in batch.rows)
        )
        while True:
            try:
                self._target.apply(replace(tried, bad_rows=bad))
                break
            except RowRefused as refusal:
                self._step("target.refused")
                tried, row = _without_row(tried, refusal)
                if row is None:
                    continue
                bad += (row,)
                self._check_room(refusal, row.target, tried.rows, bad)
        self._held = still_bad(self._held, tried.rows, bad)
        self._in_run += len(bad)

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """See the port."""
        self._target.fill(piece)

    def close(self) -> None:
        """See the port."""
        self._target.close()

    def _check_room(
        self, refusal: RowRefused, target: str, rows: Sequence[TargetRows], bad: tuple[BadRow, ...]
    ) -> None:
        """Raises ``TargetError`` naming keys where the batch would set more rows aside than may be."""
        of_table = [one for one in still_bad(self._held, rows, bad) if one.target == target]
        limits = self._limits
        for setting, number, most, named in (
            ("bad_rows_per_table", len(of_table), limits.bad_rows_per_table, of_table),
            ("bad_rows_per_run", self._in_run + len(bad), limits.bad_rows_per_run, list(bad)),
        ):
            if number > most:
                keys = "; ".join(one.key_text() for one in named[-_NAMED:])
                more = "" if len(named) <= _NAMED else f"; and {len(named) - _NAMED} more"
                raise TargetError(
                    f"more rows would be set aside than [apply] {setting} allows: {most}",
                    where=f"{refusal.table}, {keys}{more}",
                    cause=f"the last one: {refusal.cause}",
                    remedy=f"{refusal.remedy}; or let more rows be set aside: [apply] {setting}",
                ) from refusal


def _without_row(batch: TargetBatch, refusal: RowRefused) -> tuple[TargetBatch, BadRow | None]:
    """The batch without a row that the target refuses, and the record of it; None where a newer one is tried first.

    Raises the refusal itself where the row isn't among the batch's.
    """
    place = next((n for n, rows in enumerate(batch.rows) if str(rows.table.id) == refusal.table), None)
    found = None if place is None else set_aside(batch.rows[place], refusal.key)
    if place is None or found is None:
        raise refusal
    rows = replace(batch.rows[place], chunk=found.chunk, before=found.before, after=found.after)
    changed = replace(batch, rows=(*batch.rows[:place], rows, *batch.rows[place + 1 :]))
    if found.text is None:
        return changed, None
    position, reason = batch.checkpoint.position.token, cut(f"{refusal.cause} ({refusal.where})", _REASON)
    name, key = rows.table.id.name, rows.table.key
    return changed, BadRow(name, key, refusal.key, position, batch.segment, reason, found.text)


def _here(rows: TargetRows) -> TargetRows:
    """Brings dump rows to the driver before the transaction begins: which keys they have must be known in it."""
    return replace(rows, chunk=here(rows.chunk))


def _not_yet(tables: Sequence[TargetTable], beside: Beside) -> list[Finding]:
    """A finding for each table whose rows can't be set aside: others' rows may need them."""
    found = []
    if beside.mirror:
        found.append(
            Finding(
                "bad rows",
                "[apply] bad_rows",
                "some target is joined: which grain a refused row belongs to isn't known yet",
                'set bad_rows = "stop"',
            )
        )
    tied = {table.id.name for table in tables if table.references}
    tied |= {other.name for table in tables for other in table.references}
    found += [
        Finding(
            "bad rows",
            name,
            "a foreign key ties it to another table: rows that point at one set aside would have to go with it",
            'set bad_rows = "stop", or drop the foreign key from the target\'s schema until cut-over',
        )
        for name in sorted(tied)
    ]
    return found
