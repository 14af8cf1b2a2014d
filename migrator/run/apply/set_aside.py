"""Sets rows aside that the target refuses, where the project asks for it.

What stands here decorates a target. A batch is tried as it is; where the target refuses one row for what it holds, it
is tried again without that row: each try is a transaction of its own, and none but the last one is committed. The
records of the rows set aside go with the batch into the ledger. So every committed state is what the mapping makes
of one source state, without exactly the keys that the same ledger names.

Rows of joined targets are mapped inside the transaction. Those that were refused are taken out of what the next try
maps: the mirror stands where it stood, so it maps the same rows. Grains on which their mapping fails are out of it
already (``grains_aside``), and come with their records.

A row whose foreign key points at a row that isn't there, such as one set aside, goes aside as well, and leaves its
own children behind: the target finds them when all else is written, also those that no batch names. Once the row
that they wait for comes, their source rows are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from migrator.columnar.bad_rows import KeyText, StillBad, cut, here, set_aside
from migrator.errors import RowRefused, TargetError
from migrator.model.ledger import Ledger
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.progress import BadRow
from migrator.ports.mirror import Mirror
from migrator.ports.target import Orphan, OrphansAside, Target, TargetBatch, TargetRows
from migrator.run.passed import PassedOn
from migrator.run.steps import Step, no_step

_REASON = 500
_NAMED = 10
Joined = Callable[[Mirror], Iterator[TargetRows]]


Came = Callable[[], None]
"""Called when the ledger has a row set aside whose parent came."""


def with_rows_aside(
    target: Target, limits: ApplyLimits, step: Step = no_step, came: Came = lambda: None
) -> Target:
    """The target as the pipeline takes it; the same one where a refused row stops the run."""
    return AsideTarget(target, limits, step, came) if limits.bad_rows == SET_ASIDE else target


Refused = dict[str, dict[KeyText, RowRefused]]
"""Rows of joined targets that were refused, by table and key."""


@dataclass(frozen=True)
class _Place:
    """The place at which rows are refused: token of the log's position, and last segment of the batch."""

    position: str = ""
    segment: int = 0


class AsideTarget(PassedOn):
    """``ports.target.Target`` that sets aside rows which another one refuses.

    Args:
        target: what writes.
        limits: how many rows may go aside.
        step: called at the points ``target.refused`` and ``target.orphaned``.
        came: called once the ledger has rows whose parent came.
    """

    def __init__(self, target: Target, limits: ApplyLimits, step: Step = no_step, came: Came = lambda: None):
        super().__init__(target)
        self._limits, self._step, self._came = limits, step, came
        self._held: tuple[BadRow, ...] = ()
        self._still = StillBad(())
        self._in_run = 0
        self._announced: set[tuple[str, KeyText, int]] = set()
        self._place = _Place()
        target.set_orphans_aside(OrphansAside(limits.bad_rows_per_table, self._orphaned))

    def open(self, epoch: int) -> Ledger:
        """See the port."""
        ledger = super().open(epoch)
        if ledger.checkpoint is not None:
            self._held = ledger.checkpoint.bad_rows
            self._place = _Place(ledger.checkpoint.position.token, ledger.segment)
            self._look_for_parents()
        return ledger

    def apply(self, batch: TargetBatch) -> None:
        """See the port, but that rows may go aside. Raises ``TargetError`` where more would than may."""
        self._place = _Place(batch.checkpoint.position.token, batch.segment)
        known = {one.target for one in self._held}
        known |= {one.parent.target for one in self._held if one.parent is not None}
        rows = tuple(_here(rows) if rows.table.id.name in known else rows for rows in batch.rows)
        self._write(
            rows,
            batch.joined,
            lambda rows, joined: self._target.apply(replace(batch, rows=rows, joined=joined)),
        )
        self._held = self._still.left(batch.checkpoint)

    def fill(self, piece: Joined) -> None:
        """See the port, but that rows may go aside. Raises ``TargetError`` where more would than may."""
        self._write((), piece, lambda rows, joined: self._target.fill(joined or piece))

    def _write(
        self,
        rows: tuple[TargetRows, ...],
        joined: Joined | None,
        write: Callable[[tuple[TargetRows, ...], Joined | None], None],
    ) -> None:
        """Writes rows; again without those that the target refuses, until it takes all."""
        refused: Refused = {}
        self._check_unmapped(rows)
        while True:
            self._still = still = StillBad(self._held, rows)
            try:
                write(rows, None if joined is None else self._without_refused(joined, refused, still))
                break
            except RowRefused as refusal:
                self._step("target.refused")
                name = next((one.table.id.name for one in rows if str(one.table.id) == refusal.table), None)
                if name is None:
                    _take_out(refused, refusal, joined)
                else:
                    rows = _without(rows, refusal, self._place)
                    self._check_room(name, refusal, StillBad(self._held, rows))
        self._held = still.found()
        self._in_run += len(still.fresh())
        self._look_for_parents()

    def _look_for_parents(self) -> None:
        due = {
            (one.target, one.key, one.segment)
            for one in self._held
            if one.parent is not None and one.parent.came
        }
        if due - self._announced:
            self._came()
        self._announced = due

    def _check_unmapped(self, rows: tuple[TargetRows, ...]) -> None:
        """Raises ``TargetError`` where more rows couldn't be mapped than may go aside."""
        for part in rows:
            if part.bad_rows:
                self._check_room(part.table.id.name, _not_mapped(part), StillBad(self._held, rows))

    def _orphaned(self, orphans: Sequence[Orphan]) -> tuple[BadRow, ...]:
        """The records of rows of one table that the target takes out. Raises ``TargetError`` where more go aside than
        may."""
        self._step("target.orphaned")
        known = self._still.found()
        records = tuple(_record(one, known, self._place) for one in orphans)
        self._still.taken(records)
        table = orphans[0].table
        refusal = RowRefused(
            "a row points at none",
            table=str(table.id),
            key=orphans[-1].key,
            cause=records[-1].reason,
            remedy="correct the rows in the source that they point at",
        )
        self._check_room(table.id.name, refusal, self._still)
        return records

    def _without_refused(self, joined: Joined, refused: Refused, still: StillBad) -> Joined:
        """Maps joined targets, and takes out the rows that were refused before.

        Raises a refusal whose row isn't mapped this time; ``TargetError`` where more rows go aside than may.
        """

        def mapped(mirror: Mirror) -> Iterator[TargetRows]:
            missing = {(table, key): one for table, keys in refused.items() for key, one in keys.items()}
            names: dict[str, str] = {}
            for part in joined(mirror):
                table = str(part.table.id)
                names[table] = part.table.id.name
                for key, refusal in refused.get(table, {}).items():
                    without = _without_row(part, refusal, self._place)
                    if without is not None:
                        part = without
                        missing.pop((table, key), None)
                part = _placed(part, self._place)
                still.see(part)
                if any(one.grain for one in part.bad_rows):
                    self._check_room(part.table.id.name, _not_mapped(part), still)
                yield part
            for refusal in missing.values():
                raise refusal
            for table, keys in refused.items():
                self._check_room(names[table], list(keys.values())[-1], still)

        return mapped

    def _check_room(self, target: str, refusal: RowRefused, still: StillBad) -> None:
        """Raises ``TargetError`` naming keys where the batch would set more rows aside than may be."""
        of_table = [one for one in still.found() if one.target == target]
        limits, fresh = self._limits, still.fresh()
        for setting, number, most, named in (
            ("bad_rows_per_table", len(of_table), limits.bad_rows_per_table, of_table),
            ("bad_rows_per_run", self._in_run + len(fresh), limits.bad_rows_per_run, fresh),
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


def _placed(rows: TargetRows, place: _Place) -> TargetRows:
    """Rows of a joined target, whose records of grains say where in the log their batch is."""
    if not any(one.grain for one in rows.bad_rows):
        return rows
    at = tuple(
        replace(one, position=place.position, segment=place.segment) if one.grain else one
        for one in rows.bad_rows
    )
    return replace(rows, bad_rows=at)


def _not_mapped(rows: TargetRows) -> RowRefused:
    """The last of the rows that couldn't be mapped, as if the target had refused it."""
    last = rows.bad_rows[-1]
    return RowRefused(
        "a row can't be mapped",
        table=str(rows.table.id),
        key=last.key,
        cause=last.reason,
        remedy="correct the rows in the source, or the mapping",
    )


def _take_out(refused: Refused, refusal: RowRefused, joined: Joined | None) -> None:
    """Notes a row of a joined target. Raises the refusal where it can't be one, or was taken out already."""
    keys = refused.setdefault(refusal.table, {})
    if joined is None or refusal.key in keys:
        raise refusal
    keys[refusal.key] = refusal


def _without(rows: tuple[TargetRows, ...], refusal: RowRefused, place: _Place) -> tuple[TargetRows, ...]:
    """A batch's rows without one that the target refuses. Raises the refusal where it isn't among them."""
    found = tuple(
        _without_row(one, refusal, place) if str(one.table.id) == refusal.table else one for one in rows
    )
    if None in found:
        raise refusal
    return tuple(one for one in found if one is not None)


def _without_row(rows: TargetRows, refusal: RowRefused, place: _Place) -> TargetRows | None:
    """Rows of one table without the one of a refusal, and with the record of it; None where it isn't among them.

    Without a record where a newer row of its key is tried first.
    """
    found = set_aside(rows, refusal.key)
    if found is None:
        return None
    bad = rows.bad_rows
    if found.text is not None:
        name, key, reason = (
            rows.table.id.name,
            rows.table.key,
            cut(f"{refusal.cause} ({refusal.where})", _REASON),
        )
        bad += (BadRow(name, key, refusal.key, place.position, place.segment, reason, found.text),)
    return replace(rows, chunk=found.chunk, before=found.before, after=found.after, bad_rows=bad)


def _here(rows: TargetRows) -> TargetRows:
    """Brings dump rows to the driver before the transaction begins: which keys they have must be known in it."""
    return replace(rows, chunk=here(rows.chunk))


def _record(orphan: Orphan, known: Sequence[BadRow], place: _Place) -> BadRow:
    """The record of a row that points at none."""
    table, parent = orphan.table, orphan.parent
    aside = bool(parent.key) and any(parent.is_row(one.target, one.columns, one.key) for one in known)
    named = ", ".join(f"{name}={value}" for name, value in zip(parent.columns, parent.key, strict=True))
    row = f"the row of {parent.target}{' with ' if named else ''}{named}"
    reason = f"{row} that its foreign key {orphan.constraint} points at {'is set aside' if aside else 'is not there'}"
    return BadRow(
        table.id.name,
        table.key,
        orphan.key,
        place.position,
        place.segment,
        cut(reason, _REASON),
        orphan.row,
        parent=parent,
    )
