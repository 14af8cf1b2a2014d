"""Broken variants of apply: netting, batches, the target's transaction, fencing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.memory import eventlog, target
from migrator.adapters.memory.eventlog import MemorySegmentWriter
from migrator.adapters.memory.target import Commit, MemoryTarget
from migrator.columnar.keys import without_keys
from migrator.columnar.netting import net_images
from migrator.columnar.types import IMAGE_FIELDS, SIGN
from migrator.errors import MigratorError
from migrator.model.ledger import Ledger
from migrator.model.segment import Manifest
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import Batch
from migrator.ports.target import TargetBatch
from migrator.run.apply.loop import ApplyLoop
from scenarios.simulation.setup import Patch

_init = ApplyLoop.__init__
_commit = ApplyLoop._commit
_merge = target._merge


def net_without_deletes(
    schema: TableSchema, images: pa.Table, every_before: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Rows that vanish are left out of the net delta; rows that change stay."""
    before, after = net_images(schema, images, every_before)
    if not before.num_rows:
        return before, after
    kept = [pc.cast(after[name], pa.string()).to_pylist() for name in schema.key]
    gone = without_keys(schema, before, set(zip(*kept, strict=True)))
    lost = [pc.cast(gone[name], pa.string()).to_pylist() for name in schema.key]
    return without_keys(schema, before, set(zip(*lost, strict=True))), after


def net_by_ends(
    schema: TableSchema, images: pa.Table, every_before: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Only first and last image of a key count, also where a dump row came in between."""
    return net_images(schema, images)


def net_to_first_image(
    schema: TableSchema, images: pa.Table, every_before: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Nets several changes of a key wrongly: the first after image wins."""
    before, after = net_images(schema, images, every_before)
    rows = images.filter(pc.equal(images[SIGN], 1)).drop_columns([field.name for field in IMAGE_FIELDS])
    wanted = set(zip(*[after[name].to_pylist() for name in schema.key], strict=True))
    places, keys = [], zip(*[rows[name].to_pylist() for name in schema.key], strict=True)
    for place, key in enumerate(keys):
        if key in wanted:
            wanted.discard(key)
            places.append(place)
    return before, rows.take(pa.array(places, pa.int64()))


def _nothing_emptied(self: Batch) -> set[TableId]:
    """A TRUNCATE takes nothing away."""
    return set()


def _applied_unfenced(self: MemoryTarget, batch: TargetBatch) -> None:
    """Every process may write: neither the epoch nor the ledger's segment is looked at."""
    database = self._database
    changed = {
        rows.table.id: _merge(database.rows.get(rows.table.id, {}), rows) for rows in _loose(batch).rows
    }
    self._step("target.merged")
    for table, keys in changed.items():
        target._store(database.rows.setdefault(table, {}), keys)
    database.ledger = Ledger("memory", self._epoch, batch.segment, batch.checkpoint)
    database.history.append(Commit(self._epoch, batch.segment, batch.checkpoint, changed))
    self._step("target.committed")


def _loose(batch: TargetBatch) -> TargetBatch:
    """Turns off a batch's check of inserts, which would stop some mutants before they do harm."""
    return replace(batch, rows=tuple(replace(rows, strict_inserts=False) for rows in batch.rows))


def _opened_unfenced(self: MemoryTarget, epoch: int) -> Ledger:
    self._epoch = epoch
    return self._database.ledger


def _created_unfenced(self: MemorySegmentWriter, manifest: Manifest, rows: dict[str, pa.Table]) -> None:
    """The last writer of a segment number wins."""
    self._log.tables.update(rows)
    self._log.manifests[manifest.number] = manifest
    self._last = manifest
    self._next = manifest.number + 1


def _data_then_position(self: MemoryTarget, batch: TargetBatch) -> None:
    """The rows are committed, then the ledger in a transaction of its own."""
    held = _fence(self)
    _commit_rows(self, batch, held.segment, held.checkpoint)
    self._step("target.merged")
    _commit_rows(self, replace(batch, rows=()), batch.segment, batch.checkpoint)
    self._step("target.committed")


def _position_then_data(self: MemoryTarget, batch: TargetBatch) -> None:
    """The ledger is committed, then the rows in a transaction of their own."""
    _fence(self)
    _commit_rows(self, replace(batch, rows=()), batch.segment, batch.checkpoint)
    self._step("target.merged")
    _commit_rows(self, batch, batch.segment, batch.checkpoint)
    self._step("target.committed")


def _table_by_table(self: MemoryTarget, batch: TargetBatch) -> None:
    """Every target table has a transaction of its own; the last one moves the ledger."""
    held = _fence(self)
    for rows in batch.rows[:-1]:
        _commit_rows(self, replace(batch, rows=(rows,)), held.segment, held.checkpoint)
        self._step("target.merged")
    _commit_rows(self, replace(batch, rows=batch.rows[-1:]), batch.segment, batch.checkpoint)
    self._step("target.committed")


def _fence(self: MemoryTarget) -> Ledger:
    ledger = self._database.ledger
    if ledger.epoch != self._epoch:
        raise target._fenced(self._epoch, ledger)
    return ledger


def _commit_rows(self: MemoryTarget, batch: TargetBatch, segment: int, checkpoint: Any) -> None:
    database = self._database
    changed = {
        rows.table.id: _merge(database.rows.get(rows.table.id, {}), rows) for rows in _loose(batch).rows
    }
    for table, keys in changed.items():
        target._store(database.rows.setdefault(table, {}), keys)
    database.ledger = Ledger("memory", self._epoch, segment, checkpoint)
    database.history.append(Commit(self._epoch, segment, checkpoint, changed))


def _chunk_merged_last(present: Any, rows: Any) -> Any:
    """Within a batch, chunk rows override rows of the log with the same keys."""
    delta = _merge(present, replace(rows, chunk=None))
    return delta | _merge(present, replace(rows, before=None, after=None))


def _commit_anywhere(self: ApplyLoop, batch: TargetBatch) -> None:
    """Commits without a look at the ledger's position: the check would stop some mutants before they do harm."""
    _commit(self, replace(batch, link=None))


def _lost_is_done(self: ApplyLoop, batch: TargetBatch) -> None:
    """A connection lost around COMMIT counts as committed."""
    try:
        _commit_anywhere(self, batch)
    except MigratorError as error:
        if not error.retryable:
            raise


def _begins_at_log_end(self: ApplyLoop, *args: Any, **options: Any) -> None:
    """A restarted apply goes on after the newest segment instead of the ledger's."""
    _init(self, *args, **options)
    manifests = list(self._batches.manifests(self._after))  # type: ignore[attr-defined]
    if manifests and self._known is not None:
        self._after, self._known = manifests[-1].number, manifests[-1].checkpoint


TRUNCATES_IGNORED = (Patch(Batch, "emptied", _nothing_emptied),)
DELETES_DROPPED = (Patch(eventlog, "net_images", net_without_deletes),)
NET_BY_ENDS = (Patch(eventlog, "net_images", net_by_ends),)
FIRST_IMAGE = (Patch(eventlog, "net_images", net_to_first_image),)
FENCING_OFF = (
    Patch(MemoryTarget, "apply", _applied_unfenced),
    Patch(MemoryTarget, "open", _opened_unfenced),
    Patch(MemorySegmentWriter, "_create", _created_unfenced),
)
SPLIT_BRAIN = FENCING_OFF  # the model's leases have no clock of their own, so nothing else can be broken
POSITION_APART = (Patch(MemoryTarget, "apply", _data_then_position),)
POSITION_FIRST = (Patch(MemoryTarget, "apply", _position_then_data),)
TABLES_APART = (Patch(MemoryTarget, "apply", _table_by_table),)
CHUNK_LAST = (Patch(target, "_merge", _chunk_merged_last),)
LOST_IS_DONE = (Patch(ApplyLoop, "_commit", _lost_is_done),)
BEGINS_AT_LOG_END = (
    Patch(ApplyLoop, "__init__", _begins_at_log_end),
    Patch(ApplyLoop, "_commit", _commit_anywhere),
)
