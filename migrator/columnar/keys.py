"""Keys of rows: dropping touched keys from a chunk."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.text import columns_to_table
from migrator.model.event import Key
from migrator.model.table import TableSchema


def without_keys(schema: TableSchema, rows: pa.Table, keys: Collection[Key]) -> pa.Table:
    """The rows whose key is none of ``keys`` (canonical text), order kept.

    The keys go through the same decoder as the rows, so that they are compared as values: ``1.0`` and ``1.00`` of
    one decimal column are one key.
    """
    if not keys or rows.num_rows == 0:
        return rows
    key_schema = TableSchema(
        schema.id, tuple(schema.columns[index] for index in schema.key_indexes()), schema.key
    )
    touched = columns_to_table(key_schema, list(zip(*keys, strict=True)))
    if len(schema.key) == 1:
        name = schema.key[0]
        return rows.filter(pc.invert(pc.is_in(rows[name], touched[name].combine_chunks())))
    place = "__place"
    numbered = rows.select(list(schema.key)).append_column(
        place, pa.array(np.arange(rows.num_rows, dtype=np.int64))
    )
    kept = numbered.join(touched, list(schema.key), join_type="left anti", use_threads=False)
    places = kept[place].combine_chunks()
    return rows.take(places.take(pc.sort_indices(places)))
