"""The images of a batch that mappings have to see, and what is known of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.ports.eventlog import Batch
from transforms.analysis.handed_keys import handed_key
from transforms.analysis.plan import MappingPlan
from transforms.on_spark.standing import LARGE_SLOT_BYTES

_PIECE_BYTES = LARGE_SLOT_BYTES
"""Images of a large batch that go through Spark's heap at a time: the batch may be one transaction of any size."""

Sides = tuple[dict[str, pa.Table], dict[str, pa.Table]]
"""Images by source table: before and after."""


class Images:
    """The row images (before, after) that each row-wise mapping has to see.

    Args:
        spark: the session.
        plans: checked row-wise mappings by target table.
    """

    def __init__(self, spark: SparkSession, plans: Mapping[str, MappingPlan]):
        found = {name: handed_key(spark, plan) for name, plan in plans.items()}
        self._handed = {name: handed for name, handed in found.items() if handed is not None}
        self.before = {source for name, plan in plans.items() if self.both(name) for source in plan.reads}
        """Source tables whose before images some mapping has to see."""

    def both(self, target: str) -> bool:
        """Tells whether a target's mapping has to see before images too: their target keys can't be told unmapped."""
        return target not in self._handed

    def sides(self, plan: MappingPlan, batch: Batch) -> Sides:
        """Returns the before and after images of a batch that a target's mapping has to see."""
        deltas = [delta for delta in batch.deltas if delta.schema.id.name in plan.reads]
        after = {delta.schema.id.name: delta.after for delta in deltas if delta.after.num_rows}
        if not self.both(plan.target.name):
            return {}, after
        return {delta.schema.id.name: delta.before for delta in deltas if delta.before.num_rows}, after

    def gone(self, plan: MappingPlan, batch: Batch, mapped: pa.Schema) -> pa.Table | None:
        """The before rows of a target whose mapping doesn't see before images, laid out as ``mapped``."""
        handed = self._handed[plan.target.name]
        images = [d.before for d in batch.deltas if d.schema.id.name in plan.reads and d.before.num_rows]
        return pa.concat_tables([handed.rows(rows, mapped) for rows in images]) if images else None


def pieces(sides: Sides) -> Iterator[Sides]:
    """The same, ``_PIECE_BYTES`` or one row at a time: row-wise mappings don't mind."""
    before, after = sides
    for name, rows in before.items():
        yield from (({name: piece}, {}) for piece in _slices(rows))
    for name, rows in after.items():
        yield from (({}, {name: piece}) for piece in _slices(rows))


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    if rows.num_rows < 2 or rows.nbytes <= _PIECE_BYTES:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _slices(rows.slice(0, half))
    yield from _slices(rows.slice(half))


def all_images(plan: MappingPlan, batch: Batch) -> dict[str, pa.Table]:
    """All images of a batch that a target's mapping reads, by source table: after, then before."""
    return {
        delta.schema.id.name: pa.concat_tables([delta.after, delta.before])
        for delta in batch.deltas
        if delta.schema.id.name in plan.reads
    }
