"""The SQL by which rows without a parent are found and taken out."""

from __future__ import annotations

from migrator.adapters.targets.mysql.rows.merge import no_parent, qualified, quoted, texts_of
from migrator.adapters.targets.shared.orphans import OrphanSql
from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.model.target import TargetTable

_SHOWN = 100


def _found(key: ForeignKey, child: TargetTable, most: int) -> str:
    whole = {*child.key, *key.child_columns}
    texts = []
    for column in child.columns:
        text = texts_of([f"c.{quoted(column.name)}"])
        texts.append(text if column.name in whole else f"LEFT({text}, {_SHOWN:d})")
    return f"SELECT {', '.join(texts)} FROM {qualified(key.child)} c {no_parent(key, 'c')} LIMIT {most:d}"


def _removed(key: ForeignKey) -> str:
    return f"DELETE c FROM {qualified(key.child)} c {no_parent(key, 'c')}"


ORPHANS: OrphanSql[ForeignKey] = OrphanSql(_found, _removed)
