"""The net effect of a range of the log on each key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import IMAGE_FIELDS, SIGN
from migrator.model.table import TableSchema


def net_images(
    schema: TableSchema, images: pa.Table, every_before: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Net before images and net after images of a table of log images in log order.

    Per source key: if its first image is a before image, the key existed when the range began and that image is its
    state there; if its last image is an after image, the key exists at the end and that image is its state. What
    happened in between can't be seen in a target that commits whole ranges, so it needn't be mapped.

    A change of the key is a before image of the old key and an after image of the new one; both keys are netted on
    their own, which makes key swaps and chains of moves right.

    Where the range also brings dump rows of the table, ``before`` has to hold every before image. A dump row
    is what its key was at some moment within the range, and that may be neither its first nor its last state
    there:

    1. a row is inserted, and a chunk brings it;
    2. it is deleted (or changed so that it maps to other target rows);
    3. first and last image alone say that nothing is to vanish, and the chunk's row would stay for good.

    The last state of the key is the net after image, and every earlier one ended with a before image.

    Args:
        schema: the table's row schema.
        images: laid out as ``columnar.types.image_schema``; no TRUNCATE among them (``columnar.emptied``).
        every_before: whether dump rows of the table come with them.

    Returns:
        ``(before, after)``, tables with the source columns only, in log order. A key may come several times in
        ``before`` if ``every_before``.
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
    if every_before:
        before = data.filter(pc.equal(sign, -1))
    else:
        before = data.take(_with_sign(sign, grouped[f"{place}_min"], -1))
    return before, data.take(_with_sign(sign, grouped[f"{place}_max"], 1))


def _with_sign(sign: pa.Array, places: pa.ChunkedArray, wanted: int) -> pa.Array:
    """Returns those of ``places``, ascending, whose image has the wanted sign."""
    found = places.combine_chunks()
    found = found.filter(pc.equal(sign.take(found), wanted))
    return found.take(pc.sort_indices(found))
