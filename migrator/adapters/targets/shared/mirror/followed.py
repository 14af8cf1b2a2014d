"""The choice of mirrored tables whose changes in a batch are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch


def check_known(batch: TargetBatch, kept: Collection[TableId]) -> None:
    """Raises ``TargetError`` when a batch has rows of a table that wasn't prepared."""
    unknown = [rows.schema.id for rows in batch.mirror if rows.schema.id not in kept]
    if unknown:
        raise TargetError(
            f"the mirror knows no table {unknown[0]}",
            remedy="this is a fault of the tool: report it (prepare_mirror comes before apply)",
        )


def followed(targets: Sequence[JoinedTarget], filled: Collection[tuple[str, str]]) -> set[TableId]:
    """Source tables of the targets that are in step: their changes are traced."""
    return {
        schema.id
        for target in targets
        if (target.table.id.name, target.digest()) in filled
        for schema in target.sources.values()
    }
