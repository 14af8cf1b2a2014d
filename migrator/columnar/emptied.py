"""A TRUNCATE in its place of the log: a change like others, but of no row and so of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import SIGN, arrow_schema
from migrator.model.event import ChangeRun, EmptyingCodec, Images, Key, Operation, RowChange
from migrator.model.table import TableId, TableSchema

Chunks = TypeVar("Chunks")

EMPTIED = 0
"""Sign of the image that stands for a TRUNCATE."""

_BYTES = 100


@dataclass(frozen=True, slots=True)
class EmptiedCodec(EmptyingCodec):
    """A ``ChangeCodec`` of TRUNCATEs. What the items are doesn't matter: each is one."""

    schema: TableSchema

    def changes(self, items: Sequence[Any]) -> list[RowChange]:
        """See ``ChangeCodec``."""
        return [RowChange(self.schema.id, Operation.TRUNCATE, None, None) for _ in items]

    def keys(self, items: Sequence[Any]) -> list[tuple[Key, ...]]:
        """None that could be told: whoever wants keys has to look at ``ChangeRun.empties`` first."""
        return [() for _ in items]

    def images(self, items: Sequence[Any]) -> Images:
        """See ``ChangeCodec``."""
        number, layout = len(items), arrow_schema(self.schema)
        nothing = pa.Table.from_arrays([pa.nulls(number, field.type) for field in layout], schema=layout)
        return Images(np.arange(number, dtype=np.int64), np.full(number, EMPTIED, dtype=np.int8), nothing)


def emptied_run(schema: TableSchema) -> ChangeRun:
    """The table was emptied here."""
    return ChangeRun(EmptiedCodec(schema), (None,), _BYTES)


def since_emptied(images: pa.Table) -> pa.Table | None:
    """The log images behind the last TRUNCATE among them; None where there is none. Both in log order."""
    last = pc.max(pc.indices_nonzero(pc.equal(images[SIGN], EMPTIED))).as_py()
    return None if last is None else images.slice(last + 1)


def taken_in(
    schema: TableSchema,
    images: pa.Table,
    known: dict[TableId, list[tuple[TableSchema, pa.Table]]],
    chunks: dict[tuple[TableId, str], Chunks],
) -> bool:
    """Adds log images of a segment to the ``known`` ones of a batch, by table; whether the table was emptied
    in them.

    If so, whatever came before that is forgotten, dump rows included: a segment has none of a table that is emptied
    in it. ``chunks``: whatever stands for dump rows, by table and version of the row schema.
    """
    left = since_emptied(images)
    if left is not None:
        known.pop(schema.id, None)
        for key in [key for key in chunks if key[0] == schema.id]:
            del chunks[key]
    known.setdefault(schema.id, []).append((schema, images if left is None else left))
    return left is not None
