"""The choice of mirrored tables whose changes in a batch are kept, and of the columns that decide."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrator.adapters.targets.shared.mirror.columns import needed
from migrator.errors import TargetError
from migrator.model.table import TableId, TableSchema
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


def followed(
    targets: Sequence[JoinedTarget], filled: Collection[tuple[str, str]]
) -> dict[TableId, frozenset[str]]:
    """Source tables of the targets that are in step, with the columns that decide on these: their changes are
    traced."""
    in_step = [target for target in targets if (target.table.id.name, target.digest()) in filled]
    schemas = {schema.id: schema for target in in_step for schema in target.sources.values()}
    return {table: deciding(schema, in_step) for table, schema in schemas.items()}


def deciding(schema: TableSchema, targets: Sequence[JoinedTarget]) -> frozenset[str]:
    """The columns of a table a change of which may change any of the targets.

    A computed grain's function may read more than the mapping does: there every column decides.
    """
    computed = any(
        reach.name and schema.id.name in reach.tables() for one in targets for reach in one.reaches
    )
    return frozenset(schema.names() if computed else needed(schema, targets))
