"""The images of a batch beside the rows as they were: which of them change anything that somebody reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PLACE, _KNOWN = "__place", "__known"
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
"""Floating numbers are compared as their bits: 0.0 and -0.0 are equal and not the same, NaN is no equal of itself."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The images of one table in a batch.

    Attributes:
        quiet: after images of rows that are there and stay the same in every column that is read.
        after: the other after images.
        before: before images of keys that no after image has; None where there were none.
        columns: columns that are read and that ``after`` changes; None where rows come, go, or get another key.
    """

    quiet: pa.Table
    after: pa.Table
    before: pa.Table | None
    columns: frozenset[str] | None


def compared(
    after: pa.Table, before: pa.Table | None, known: pa.Table, key: Sequence[str], read: Collection[str]
) -> Compared:
    """Parts the images by what they change.

    Values are the same only if they are identical: whoever takes too many for changed maps a row in vain, whoever
    takes too few leaves an old row in the target. So values of unlike types are other ones, too.

    Args:
        after, before: ``NetDelta.after`` and ``NetDelta.before`` of a batch without dump rows: no key comes twice.
        known: the rows of keys of ``after`` as they were, of those that were there.
        key: the table's.
        read: columns that somebody reads, or that rows are found by.
    """
    needed = list(dict.fromkeys([*key, *read]))
    if not all(_has(after, known, name) for name in needed):
        return Compared(after.slice(0, 0), after, before, None)
    places, found = _met(after.select(key), known.select(key), key)
    same = {name: _same(after[name].take(places), known[name].take(found)) for name in needed}
    quiet = np.zeros(after.num_rows, dtype=bool)
    quiet[places.to_numpy()] = np.logical_and.reduce([*same.values()])
    mask = pa.array(quiet)
    rest, staying = after.filter(pc.invert(mask)), after.filter(mask)
    gone = before if before is None else _without(before, after, key)
    comes = len(places) < after.num_rows
    goes = gone is not None and gone.num_rows > 0
    columns = None if comes or goes else frozenset(name for name in needed if not same[name].all())
    return Compared(staying, rest, gone, columns)


def _has(after: pa.Table, known: pa.Table, name: str) -> bool:
    if name not in after.column_names or name not in known.column_names:
        return False
    return bool(after.schema.field(name).type == known.schema.field(name).type)


def _met(after: pa.Table, known: pa.Table, key: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """The places, in both, of rows with one key. A key that is met otherwise than by equality is in neither."""
    both = _placed(after, _PLACE).join(
        _placed(known, _KNOWN), list(key), join_type="inner", use_threads=False
    )
    return both[_PLACE].combine_chunks(), both[_KNOWN].combine_chunks()


def _without(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows whose key is none of the others', order kept."""
    left = _placed(rows.select(key), _PLACE).join(
        others.select(key), list(key), join_type="left anti", use_threads=False
    )
    places = left[_PLACE].combine_chunks()
    return rows.take(places.take(pc.sort_indices(places)))


def _placed(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column(name, pa.array(np.arange(rows.num_rows, dtype=np.int64)))


def _same(ones: pa.ChunkedArray, others: pa.ChunkedArray) -> Any:
    """Tells of each pair whether both values are identical, NULLs too."""
    one, other = ones.combine_chunks(), others.combine_chunks()
    bits = _BITS.get(one.type)
    if bits is not None:
        one, other = one.view(bits), other.view(bits)
    equal = pc.fill_null(pc.equal(one, other), False)
    nulls = pc.and_(pc.is_null(one), pc.is_null(other))
    return pc.or_(equal, nulls).to_numpy(zero_copy_only=False)
