"""Numbers of many row images at once: what ``value_text`` prints, and Arrow's casts make of it, without the
text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows.cells import Cells, Numbers
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.value_text import DIGIT_BYTES, decimal_groups
from migrator.columnar.types import arrow_type
from migrator.model.table import Column

Convert = Callable[[Cells], "pa.Array | None"]
"""An Arrow array in the column's type; None where a value needs the way over its text."""

_WIDTHS = {types.TINY: 1, types.SHORT: 2, types.INT24: 3, types.LONG: 4, types.LONGLONG: 8}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LIMB_DIGITS = 18
"""Decimal digits of which 64 bits hold every number."""


def number_of(logged: LoggedColumn, column: Column, dialect: Dialect) -> Convert | None:
    """Returns the conversion of a numeric column in bulk; None when it is converted only by its text."""
    if logged.type in _WIDTHS:
        return _integer(logged, column)
    if logged.type == types.NEWDECIMAL and column.decimal() == (logged.meta, logged.scale):
        return _decimal(logged.meta, logged.scale)
    if (logged.type, column.type) in ((types.FLOAT, "float32"), (types.DOUBLE, "float64")):
        return _float("<f4" if logged.type == types.FLOAT else "<f8", column, dialect)
    return None


def _integer(logged: LoggedColumn, column: Column) -> Convert | None:
    width = _WIDTHS[logged.type]
    if column.type == "decimal(20,0)" and width == 8 and logged.unsigned:
        return lambda cells: _decimals(cells, cells.little(0, 8), 20, 0)
    needed = 8 * width + (1 if logged.unsigned else 0)
    if _BITS.get(column.type, 0) < needed:
        return None
    target = arrow_type(column)
    numpy = np.dtype(column.type)
    return lambda cells: cells.fixed(cells.little(0, width, not logged.unsigned).astype(numpy), target)


def _float(kind: str, column: Column, dialect: Dialect) -> Convert:
    target = arrow_type(column)
    keeps_sign = dialect.double_text(-0.0) != "0"

    def convert(cells: Cells) -> pa.Array | None:
        values = cells.floats(kind)
        if not np.isfinite(values).all():
            return None
        return cells.fixed(values if keeps_sign else values + values.dtype.type(0), target)

    return convert


def _decimal(precision: int, scale: int) -> Convert:
    places = []
    at = 0
    for digits in decimal_groups(precision, scale):
        places.append((at, DIGIT_BYTES[digits], digits))
        at += DIGIT_BYTES[digits]

    def convert(cells: Cells) -> pa.Array | None:
        positive = cells.big(0, 1) >= 0x80
        limbs: list[tuple[Numbers, int]] = []
        for number, (offset, width, digits) in enumerate(places):
            group = cells.big(offset, width)
            if number == 0:
                group ^= 1 << 8 * width - 1
            group = np.where(positive, group, group ^ ((1 << 8 * width) - 1))
            if (group >= 10**digits).any():
                return None
            if limbs and limbs[-1][1] + digits <= _LIMB_DIGITS:
                before, count = limbs.pop()
                limbs.append((before * 10**digits + group, count + digits))
            else:
                limbs.append((group, digits))
        signed = [(np.where(positive, limb, -limb), digits) for limb, digits in limbs]
        if len(signed) == 1:
            return _decimals(cells, signed[0][0], precision, scale)
        return _wide_decimals(cells, signed, precision, scale)

    return convert


def _decimals(cells: Cells, numbers: Numbers, precision: int, scale: int) -> pa.Array:
    """128-bit decimals of 64-bit numbers: the upper half is the sign."""
    halves = np.zeros((len(numbers), 2), np.int64)
    halves[:, 0] = numbers.view(np.int64)
    if numbers.dtype == np.int64:
        halves[:, 1] = numbers >> 63
    return cells.fixed(halves, pa.decimal128(precision, scale))


def _wide_decimals(cells: Cells, limbs: list[tuple[Numbers, int]], precision: int, scale: int) -> pa.Array:
    """The same of several limbs, joined in 256 bits, where Arrow lets products grow."""
    pieces = [pa.array(limb).cast(pa.decimal256(19, 0)) for limb, _ in limbs]
    total = pieces[0]
    for piece, (_, digits) in zip(pieces[1:], limbs[1:], strict=True):
        factor = pa.scalar(10**digits, pa.decimal256(digits + 1, 0))
        total = pc.add(pc.multiply(total, factor), piece)
    whole = total.cast(pa.decimal128(38, 0))
    halves = np.frombuffer(whole.buffers()[1], np.int64)[: 2 * len(whole)].reshape(-1, 2)
    return cells.fixed(halves, pa.decimal128(precision, scale))
