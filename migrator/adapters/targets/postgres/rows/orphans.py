"""The SQL by which rows without a parent are found and taken out."""

from __future__ import annotations

from migrator.adapters.targets.postgres.rows.merge import qualified, quoted, without_parent
from migrator.adapters.targets.postgres.structure import ForeignKey
from migrator.adapters.targets.shared.orphans import OrphanSql
from migrator.model.target import TargetTable

_SHOWN = 100


def _found(key: ForeignKey, child: TargetTable, most: int) -> str:
    whole = {*child.key, *key.child_columns}
    texts = []
    for column in child.columns:
        text = f"c.{quoted(column.name)}::text"
        texts.append(text if column.name in whole else f"pg_catalog.left({text}, {_SHOWN:d})")
    return f"SELECT {', '.join(texts)} FROM {qualified(key.child)} c WHERE {without_parent(key, 'c')} LIMIT {most:d}"


def _removed(key: ForeignKey) -> str:
    return f"DELETE FROM {qualified(key.child)} c WHERE {without_parent(key, 'c')}"


ORPHANS = OrphanSql(_found, _removed)
