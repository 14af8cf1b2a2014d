"""The difference between two bags of mapped rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_SIGN = "__sign"
_PLACE = "__place"


def difference(
    mapped: pa.Table, side: str, key: Sequence[str], keep_equal: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Rows of before alone, and rows of after alone, each as often as it is there more than on the other side.

    Both come in the order of the key, if it has one: the target writes them so, and sees at once which rows stay.

    Args:
        mapped: rows with a column ``side``: 0 before, 1 after.
        side: that column's name.
        key: the target's.
        keep_equal: leaves both sides as they are.
    """
    after = pc.equal(mapped[side], 1)
    rows = mapped.drop_columns([side])
    if keep_equal or not rows.num_rows:
        return rows.filter(pc.invert(after)), rows.filter(after)
    signed = rows.append_column(_SIGN, pc.if_else(after, 1, -1)).append_column(
        _PLACE, pa.array(range(rows.num_rows), pa.int64())
    )
    counted = signed.group_by(rows.column_names, use_threads=False).aggregate(
        [(_SIGN, "sum"), (_PLACE, "min")]
    )
    sums, places = counted[f"{_SIGN}_sum"], counted[f"{_PLACE}_min"]
    return (
        _ordered(_repeated(rows, places, sums, -1), key),
        _ordered(_repeated(rows, places, sums, 1), key),
    )


def _repeated(rows: pa.Table, places: pa.ChunkedArray, sums: pa.ChunkedArray, sign: int) -> pa.Table:
    """The rows at these places, each ``sum * sign`` times; a row that is there twice must stay so, to be
    refused."""
    times = pc.multiply(sums, sign).to_numpy()
    wanted = times > 0
    return rows.take(pa.array(places.to_numpy()[wanted].repeat(times[wanted])))


def _ordered(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    if not set(key) <= {*rows.column_names}:
        return rows  # refused where rows are written
    try:
        return rows.sort_by([(name, "ascending") for name in key])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # a type without an order
        return rows


def parted(before: pa.Table, after: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The rows of before whose keys are not in after, and those whose keys are."""
    if not before.num_rows or not after.num_rows:
        return before, before.slice(0, 0)
    keyed = before.select(key).append_column(_PLACE, pa.array(range(before.num_rows), pa.int64()))
    met = keyed.join(after.select(key).group_by(key).aggregate([]), list(key), join_type="left semi")[_PLACE]
    there = pc.is_in(pa.array(range(before.num_rows), pa.int64()), met.combine_chunks())
    return before.filter(pc.invert(there)), before.filter(there)
