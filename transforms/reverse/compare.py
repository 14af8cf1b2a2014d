"""Old rows and those that came back, cell by cell: exact, null-safe, whatever a collation takes for equal. Pure."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

MOST_EXAMPLES = 3
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Change:
    """One value that came back otherwise: the row's key, what it was, what came back; each as text."""

    key: str
    old: str
    back: str


@dataclass(frozen=True, slots=True)
class Cells:
    """A column of the rows compared.

    Attributes:
        changed: number of values that came back otherwise.
        examples: some of them, each of another value.
    """

    changed: int
    examples: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome for one table.

    Attributes:
        rows: old rows that came back once and were compared.
        columns: every column that the reverse function fills.
        missing: keys of old rows that didn't come back, as text.
        extra: keys of rows that came back, and are no old ones.
        twice: keys that came back more than once.
    """

    rows: int
    columns: Mapping[str, Cells]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    twice: tuple[str, ...]


def compared(
    old: pa.Table, back: pa.Table, key: Sequence[str], columns: Sequence[str], known: pa.Table | None = None
) -> Compared:
    """Compares rows by key.

    Args:
        old: the rows that went there.
        back: what came back of them and, perhaps, of others; of the same types.
        key: columns that tell a row from all others.
        columns: those to be compared.
        known: further old rows that were read; of these it doesn't matter whether they came back.
    """
    before, after = _keys(old, key), _keys(back, key)
    others = set(_keys(known, key)) if known is not None else set()
    times = Counter(after)
    place = {one: index for index, one in enumerate(after)}
    there = [one for one in before if one in place]
    wanted = set(before)
    names = {one: _named(key, one) for one in {*wanted, *times}}
    return Compared(
        rows=len(there),
        columns={name: _cells(old, back, name, before, place, names) for name in columns},
        missing=tuple(names[one] for one in before if one not in place),
        extra=tuple(names[one] for one in times if one not in wanted and one not in others),
        twice=tuple(names[one] for one, number in times.items() if number > 1 and one in wanted),
    )


def _cells(
    old: pa.Table,
    back: pa.Table,
    name: str,
    before: Sequence[tuple[object, ...]],
    place: Mapping[tuple[object, ...], int],
    names: Mapping[tuple[object, ...], str],
) -> Cells:
    mine, theirs = _exact(old[name]), _exact(back[name])
    changed, examples, shown = 0, list[Change](), set[tuple[str, str]]()
    for index, one in enumerate(before):
        other = place.get(one)
        if other is None or mine[index] == theirs[other]:
            continue
        changed += 1
        pair = shown_value(old[name][index].as_py()), shown_value(back[name][other].as_py())
        if pair not in shown and len(examples) < MOST_EXAMPLES:
            shown.add(pair)
            examples.append(Change(names[one], *pair))
    return Cells(changed, tuple(examples))


def _exact(column: pa.ChunkedArray) -> list[object]:
    """Values that are equal exactly if nothing tells them apart: floats by their bits, NULL as itself."""
    if pa.types.is_floating(column.type):
        return [None if value is None else struct.pack(">d", value) for value in column.to_pylist()]
    if pa.types.is_temporal(column.type):
        return list(column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist())
    return list(column.to_pylist())


def _keys(rows: pa.Table, key: Sequence[str]) -> list[tuple[object, ...]]:
    columns = [_exact(rows[name]) for name in key]
    return list(zip(*columns, strict=True))


def _named(key: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in zip(key, values, strict=True))


def shown_value(value: object) -> str:
    """A value as a line of a report has it: texts in quotes, so that blanks at their ends are seen."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        text = f"0x{value.hex()}"
    elif isinstance(value, str):
        text = repr(value)
    else:
        text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def same_types(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Rows with exactly these columns and types."""
    return pa.table([pc.cast(rows[field.name], field.type) for field in wanted], schema=wanted)
