"""Checks of target tables that were read from the catalogue, whatever the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrator.errors import TargetError
from migrator.model.table import TableId


def require_tables(found: Iterable[TableId], names: Sequence[str], where: str) -> None:
    """Raises ``TargetError`` naming the tables that don't exist. ``where``: the schema or database, for messages."""
    present = {table.name for table in found}
    missing = [name for name in names if name not in present]
    if missing:
        raise TargetError(
            f"the target has no table {', '.join(missing)}",
            where=where,
            cause="the mapping writes to it, but no revision has created it (views don't count)",
            remedy="run `alembic upgrade head` on the target, or correct the name in the mapping",
        )
