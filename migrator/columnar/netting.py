"""The net effect of a range of the log on each key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import IMAGE_FIELDS, SIGN
from migrator.model.table import TableSchema


def net_images(schema: TableSchema, images: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Net before images and net after images of a table of log images in log order.

    Per source key: if its first image is a before image, the key existed when the range began and that image is its
    state there; if its last image is an after image, the key exists at the end and that image is its state. What
    happened in between can't be seen in a target that commits whole ranges, so it needn't be mapped.

    A change of the key is a before image of the old key and an after image of the new one; both keys are netted on
    their own, which makes key swaps and chains of moves right.

    Args:
        schema: the table's row schema.
        images: laid out as ``columnar.types.image_schema``.

    Returns:
        ``(before, after)``, tables with the source columns only, in log order.
    """
    data = images.drop_columns([field.name for field in IMAGE_FIELDS])
    if images.num_rows == 0:
        return data, data
    place = "__place"
    keys = images.select(list(schema.key)).append_column(
        place, pa.array(np.arange(images.num_rows, dtype=np.int64))
    )
    grouped = keys.group_by(list(schema.key), use_threads=False).aggregate([(place, "min"), (place, "max")])
    sign = images[SIGN].combine_chunks()
    return (
        data.take(_with_sign(sign, grouped[f"{place}_min"], -1)),
        data.take(_with_sign(sign, grouped[f"{place}_max"], 1)),
    )


def _with_sign(sign: pa.Array, places: pa.ChunkedArray, wanted: int) -> pa.Array:
    """Those of ``places``, ascending, whose image has the wanted sign."""
    found = places.combine_chunks()
    found = found.filter(pc.equal(sign.take(found), wanted))
    return found.take(pc.sort_indices(found))
