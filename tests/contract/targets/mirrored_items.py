"""A source table that is mirrored, and a joined target made of it: ``item``, each row as it is in the source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows
from migrator.ports.target import TargetBatch, TargetRows
from tests.contract.targets.target_under_test import Applier, Rows, arrow, checkpoint

OLD = TableSchema(
    TableId("old", "item"),
    (
        Column("id", "int64", False, "bigint"),
        Column("name", "string", True, "text"),
        Column("quantity", "int32", True, "integer"),
    ),
    ("id",),
)


def joined(applier: Applier) -> JoinedTarget:
    """A target that needs one table of the mirror, found by key, by a text and by another column."""
    own, twin = Node("item", OLD), Node("twin", OLD, 0, ("quantity",), ("quantity",))
    reaches = (Reach(("id",), (own,)), Reach(("name",), (own, twin)))
    return JoinedTarget(applier.tables["item"], reaches, {"item": tuple(OLD.names())})


def change(before: Rows | None, after: Rows | None) -> MirrorRows:
    """Images of the log."""
    return MirrorRows(OLD, (), arrow("item", before), arrow("item", after))


def apply_joined(applier: Applier, target: JoinedTarget, change: MirrorRows) -> None:
    """The next batch: moves the mirror, and writes the target's rows that it touches."""

    def mapped(mirror: Mirror) -> Iterator[TargetRows]:
        if (target.table.id.name, target.digest()) not in mirror.filled():
            mirror.mark_filled(target)
            yield TargetRows(target.table, pa.concat_tables(mirror.whole(OLD)), None, None, False)
            return
        mirror.trace(target)
        for sides in mirror.slices(target, 9):
            yield TargetRows(target.table, None, sides.before["item"], sides.after["item"], False)

    segment = applier.segment + 1
    applier.target.apply(TargetBatch(segment, checkpoint(segment), (), (change,), mapped))
    applier.segment = segment


def mirrored(applier: Applier) -> Rows:
    """All rows of the mirror, as a batch sees them that changes nothing."""
    found: list[tuple[object, ...]] = []

    def read(mirror: Mirror) -> Iterator[TargetRows]:
        found.extend(tuple(row.values()) for part in mirror.whole(OLD) for row in part.to_pylist())
        return iter(())

    segment = applier.segment + 1
    applier.target.apply(TargetBatch(segment, checkpoint(segment), (), (change(None, None),), read))
    applier.segment = segment
    return sorted(found, key=lambda row: str(row[0]))
