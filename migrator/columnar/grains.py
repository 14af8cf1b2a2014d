"""Rows of source tables by the grains of a joined target: which grains they have, and the rows of some of them alone.

The rows are those that a mapping gets, in one state of the source. Links are followed as the mirror follows them, by
values that are the same; where the two ends have types that can't be compared here, all rows stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from migrator.columnar.bad_rows import KeyText, key_texts
from migrator.model.progress import GrainName
from migrator.model.reach import Reach, entangled, spoken

NULL_TEXT = "\\N"
"""The text of a grain's column without a value; a backslash in a value is written twice."""
Tables = Mapping[str, pa.Table]
_NULL = "\0"


class Grains:
    """The grains of one joined target.

    Args:
        reaches: the target's.

    ``apart``: whether rows can be told apart by grains. Not where a grain is computed from several rows, or where
    rows of its table come in by another link as well.
    """

    def __init__(self, reaches: Sequence[Reach]):
        self._reaches = tuple(reaches)
        self._roots: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for reach in reaches:
            label = tuple(f"{reach.root.schema.id.name}.{spoken(name)}" for name in reach.grain)
            for index in reach.roots():
                self._roots[reach.nodes[index].schema.id.name] = label, reach.grain_of(index)
        self.apart = all(reach.grain for reach in reaches) and not entangled(self._reaches)

    def of(self, tables: Tables) -> list[GrainName]:
        """Returns the grains that some rows have, each once."""
        found: dict[GrainName, None] = {}
        for name in self._roots:
            if name in tables:
                found.update(dict.fromkeys(self._named(name, tables[name])))
        return list(found)

    def only(self, tables: Tables, grains: Collection[GrainName]) -> dict[str, pa.Table]:
        """Returns the rows of these grains, and what is linked to them."""
        return self._rows(tables, set(grains), True)

    def without(self, tables: Tables, grains: Collection[GrainName]) -> dict[str, pa.Table]:
        """Returns the rows of all other grains, and what is linked to them."""
        return self._rows(tables, set(grains), False)

    def own(self, tables: Tables, grain: GrainName) -> dict[str, pa.Table]:
        """Returns the rows that have a grain, without what is linked to them."""
        found = {}
        for name in self._roots:
            if name in tables:
                has = [one == grain for one in self._named(name, tables[name])]
                found[name] = tables[name].filter(pa.array(has, pa.bool_()))
        return found

    def _named(self, table: str, rows: pa.Table) -> list[GrainName]:
        label, columns = self._roots[table]
        return [(label, texts) for texts in _texts(rows, columns)]

    def _rows(self, tables: Tables, grains: set[GrainName], wanted: bool) -> dict[str, pa.Table]:
        kept = {name: np.zeros(rows.num_rows, dtype=bool) for name, rows in tables.items()}
        for reach in self._reaches:
            met: list[np.ndarray] = []
            for node in reach.nodes:
                name = node.schema.id.name
                rows = tables.get(name)
                if rows is None:
                    met.append(np.zeros(0, dtype=bool))
                    continue
                if node.above is None:
                    found = np.array([(one in grains) is wanted for one in self._named(name, rows)], bool)
                else:
                    above = tables.get(reach.nodes[node.above].schema.id.name)
                    found = _linked(rows, node.columns, above, node.above_columns, met[node.above])
                met.append(found)
                kept[name] |= found
        return {name: rows.filter(pa.array(kept[name])) for name, rows in tables.items()}


def _texts(rows: pa.Table, columns: Sequence[str]) -> list[KeyText]:
    """The values of a grain as texts that every ledger can have: two values never have the same.

    Those that Spark takes for one have one: it groups 0.0 with -0.0, and every NaN with the others.
    """
    parts = []
    for name in columns:
        same = {"-0": "0", "-nan": "nan"} if pa.types.is_floating(rows[name].type) else {}
        written = [
            _written(same.get(text, text)) for (text,) in key_texts(_in_utc(rows.select([name])), (name,))
        ]
        nulls = rows[name].is_null().to_pylist()
        parts.append([NULL_TEXT if null else text for text, null in zip(written, nulls, strict=True)])
    return list(zip(*parts, strict=True))


def _in_utc(rows: pa.Table) -> pa.Table:
    """Moments as times in UTC, of which those beyond all calendars have a text of their own."""
    kind = rows.schema.types[0]
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return rows
    return rows.cast(pa.schema([pa.field(rows.column_names[0], pa.timestamp(kind.unit))]))


def _written(text: str) -> str:
    return text.replace("\\", "\\\\").replace(_NULL, "\\0")


def _linked(
    rows: pa.Table, columns: Sequence[str], above: pa.Table | None, ends: Sequence[str], met: np.ndarray
) -> np.ndarray:
    """Tells of each row whether it is linked to one of the rows above that are met."""
    if above is None:
        return np.zeros(rows.num_rows, dtype=bool)
    sides = [_comparable(rows[name].type, above[end].type) for name, end in zip(columns, ends, strict=True)]
    if not all(sides):
        return np.ones(rows.num_rows, dtype=bool)
    values = set(_values(above.filter(pa.array(met)), ends)) - {None}
    return np.array([one is not None and one in values for one in _values(rows, columns)], dtype=bool)


def _comparable(one: pa.DataType, other: pa.DataType) -> bool:
    exact = pa.types.is_integer(one) or pa.types.is_decimal(one)
    if exact and (pa.types.is_integer(other) or pa.types.is_decimal(other)):
        return True
    return bool(one == other) and not pa.types.is_floating(one)


def _values(rows: pa.Table, columns: Sequence[str]) -> list[KeyText | None]:
    """The values by which rows are linked; None where one is NULL, which links nothing."""
    nulls = np.zeros(rows.num_rows, dtype=bool)
    for name in columns:
        nulls |= np.array(rows[name].is_null().to_pylist(), dtype=bool)
    exact = [pa.types.is_decimal(rows[name].type) for name in columns]
    found = []
    for texts, null in zip(key_texts(rows, columns), nulls, strict=True):
        one = tuple(_plain(text) if number else text for text, number in zip(texts, exact, strict=True))
        found.append(None if null else one)
    return found


def _plain(text: str) -> str:
    """A decimal number as an integer would be written, where it is one."""
    if text == _NULL:
        return text
    number = Decimal(text)
    return str(int(number)) if number == number.to_integral_value() else str(number.normalize())
