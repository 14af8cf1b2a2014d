"""Rows that a target refuses: which of a batch's rows go aside, and which of those set aside before stay so."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from migrator.columnar.shown import shown
from migrator.model.progress import BadRow, Checkpoint, GrainName
from migrator.model.target import TargetColumn, TargetTable

_ROW_TEXT = 1000
_LEFT_OUT = "..."
"""Stands in a row's text for what is left out of it."""
_NULL = "\0"
"""The text of a key's column without a value: two rows of such keys aren't one row."""
_NO_TEXT = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_SAME_TEXT = re.compile(r"text|character varying|varchar|uuid|citext|enum", re.IGNORECASE)
"""Types of which a server prints the text that was stored; a UUID as canonical as sources print it."""
_MAPPED = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
}
KeyText = tuple[str, ...]


class RowsOfTable(Protocol):
    """One table's rows of a batch (``ports.target.TargetRows``)."""

    @property
    def table(self) -> TargetTable:
        """The target table."""
        ...

    @property
    def chunk(self) -> Any | None:
        """Mapped dump rows, or those that executors have staged."""
        ...

    @property
    def before(self) -> Any | None:
        """Rows whose keys vanish unless ``after`` has them."""
        ...

    @property
    def after(self) -> Any | None:
        """Rows that are written."""
        ...

    @property
    def doubted(self) -> Any | None:
        """Keys whose rows vanish unless others have them."""
        ...

    @property
    def emptied(self) -> bool:
        """Tells whether all rows go first."""
        ...

    @property
    def replaces(self) -> bool:
        """Tells whether all other rows go."""
        ...

    @property
    def bad_rows(self) -> Sequence[BadRow]:
        """Rows that were taken out of these."""
        ...

    @property
    def grains(self) -> Collection[GrainName]:
        """Grains that were set aside until now, and are mapped again."""
        ...

    @property
    def anew(self) -> bool:
        """Tells whether the table is derived anew from this batch on."""
        ...


RowsT = TypeVar("RowsT", bound=RowsOfTable)


@dataclass(frozen=True, slots=True)
class WithoutRow:
    """A batch's rows of one table without one of them.

    Attributes:
        chunk, before, after: as ``RowsOfTable`` has them.
        text: the row that was taken out, where it goes aside; None where a newer one of its key is tried first.
    """

    chunk: pa.Table | None
    before: pa.Table | None
    after: pa.Table | None
    text: str | None


def key_texts(rows: pa.Table, key: Sequence[str]) -> list[KeyText]:
    """The keys of all rows as text: numbers, texts and dates as most servers print them, bytes as hexadecimal digits.

    One value has one text, whatever other rows are beside it, and two values never have the same:
    ``transforms.casts.parsed`` reads the value back. NULL is a text that no ledger can have.
    """
    return list(zip(*(_texts(rows[name]) for name in key), strict=True))


def key_at(rows: pa.Table, key: Sequence[str], row: int) -> KeyText:
    """The key of one row as text, as ``key_texts``."""
    return key_texts(rows.slice(row, 1), key)[0]


def stored_texts(table: TargetTable, names: Sequence[str], stored: Sequence[str | None]) -> KeyText | None:
    """Values of some columns from their texts as the server prints them, as ``key_texts`` has them of mapped rows.

    None where one is NULL, or has a type of which the mapped text can't be known.
    """
    found = []
    for name, text in zip(names, stored, strict=True):
        column = table.column(name)
        kind = None if column is None else _mapped_type(column)
        if kind is None or text is None or _NULL in text:
            return None
        try:
            found.append(_as_mapped(text, kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            return None
    return tuple(found)


def _mapped_type(column: TargetColumn) -> pa.DataType | None:
    """The type in which a mapping gives the values of a column; None where two texts may stand for one value."""
    if decimal := _DECIMAL.fullmatch(column.spark_type):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if column.spark_type == "string" and not _SAME_TEXT.match(column.native_type):
        return None
    return _MAPPED.get(column.spark_type)


def _as_mapped(text: str, kind: pa.DataType) -> str:
    if pa.types.is_binary(kind):
        return bytes.fromhex(re.sub(r"^(\\x|0x)", "", text)).hex()
    return str(_texts(pa.chunked_array([pa.array([text]).cast(kind)]))[0])


def _texts(values: pa.ChunkedArray) -> list[str]:
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        found = [None if value is None else value.hex() for value in values.to_pylist()]
    else:
        try:
            found = values.cast(pa.string()).to_pylist()
        except _NO_TEXT:
            found = [_text(value) for value in values]
    return [_NULL if text is None else text for text in found]


def _text(value: pa.Scalar) -> str | None:
    """One value as it would be in a column that has a text for all of its own."""
    if not value.is_valid:
        return None
    try:
        return str(value.cast(pa.string()).as_py())
    except _NO_TEXT:  # dates that no calendar has, nested types
        return str(shown(value))


class StillBad:
    """The rows that are set aside once a batch is applied, found while its rows pass.

    A batch that names a key, in whichever of its parts, has a later version of its row or deletes it: what was set
    aside of that key is settled. It is bad again where it is among those taken out. A grain is settled where it is
    mapped again.

    Args:
        held: those that were set aside until now.
        rows: what is known of the batch at once. Rows of joined targets come later, inside the transaction.

    One that waits for its parent is noted as one that can be tried again where such a row passes.

    ``new``: those taken out of the rows that have passed.
    """

    def __init__(self, held: Sequence[BadRow], rows: Iterable[RowsOfTable] = ()):
        self._held = held
        self._dropped = {_name_of(one): one for one in held if one.dropped}
        self._parents = {one.parent.target: set[tuple[str, ...]]() for one in held if one.parent is not None}
        for one in held:
            if one.parent is not None and one.parent.key:
                self._parents[one.parent.target].add(one.parent.columns)
        self._came: set[tuple[str, tuple[str, ...], KeyText]] = set()
        self._named: dict[str, set[KeyText]] = {one.target: set() for one in held}
        self._emptied: set[str] = set()
        self._mapped_again: set[tuple[str, GrainName]] = set()
        self.new: list[BadRow] = []
        for part in rows:
            self.see(part)

    def see(self, rows: RowsOfTable) -> None:
        """Takes note of rows of one table."""
        name = rows.table.id.name
        if rows.emptied or rows.replaces or rows.anew:
            self._emptied.add(name)
        elif name in self._named:
            self._named[name] |= _named(rows)
        self._mapped_again |= {(name, grain) for grain in rows.grains}
        for columns in self._parents.get(name, ()):
            self._came |= {(name, columns, _folded(values)) for values in _written(rows, columns)}
        self.taken(rows.bad_rows)

    def taken(self, rows: Sequence[BadRow]) -> None:
        """Takes note of rows that were taken out. Where a batch is written twice, what is taken out twice is one."""
        again = {*map(_name_of, rows)}
        self.new = [one for one in self.new if _name_of(one) not in again] + list(rows)

    def fresh(self) -> list[BadRow]:
        """The rows taken out that weren't set aside before: one that is tried in vain with each batch is one."""
        known = {*map(_name_of, self._held)}
        return [one for one in self.new if _name_of(one) not in known]

    def passing(self, rows: Iterable[RowsT]) -> Iterator[RowsT]:
        """The same rows, each seen before it is given on."""
        for one in rows:
            self.see(one)
            yield one

    def left(self, checkpoint: Checkpoint) -> tuple[BadRow, ...]:
        """Returns the same of those targets that the mapping still makes, as far as a ledger's checkpoint says."""
        targets = None if checkpoint.mapped is None else {one.target for one in checkpoint.mapped}
        return tuple(one for one in self.found() if targets is None or one.target in targets)

    def found(self) -> tuple[BadRow, ...]:
        """Returns the rows that are set aside, as far as rows have passed: those of before, then the new ones."""
        kept = [one for one in self._held if not self._settled(one)]
        return _closed((*map(self._looked_at, kept), *map(self._as_accepted, self.new)))

    def _as_accepted(self, one: BadRow) -> BadRow:
        """A row that went aside again: still given up where it is the very same, which was merely tried again.

        Another row beside it had its source tables dumped, or its target derived anew. A text of which something
        is left out doesn't say that it is the same.
        """
        before = self._dropped.get(_name_of(one))
        same = before is not None and (before.row, before.reason) == (one.row, one.reason)
        return replace(one, dropped=before.dropped) if before and same and _LEFT_OUT not in one.row else one

    def _settled(self, one: BadRow) -> bool:
        if one.target in self._emptied:
            return True
        if one.grain:
            return (one.target, (one.columns, one.key)) in self._mapped_again
        return one.key in self._named[one.target]

    def _looked_at(self, one: BadRow) -> BadRow:
        parent = one.parent
        if (
            parent is None
            or parent.came
            or (parent.target, parent.columns, _folded(parent.key)) not in self._came
        ):
            return one
        if any(parent.is_row(new.target, new.columns, new.key) for new in self.new):
            return one  # it was written, and went aside as well
        return replace(one, parent=replace(parent, came=True))


def _name_of(one: BadRow) -> tuple[str, tuple[str, ...], KeyText]:
    return one.target, one.columns, one.key


def _closed(rows: tuple[BadRow, ...]) -> tuple[BadRow, ...]:
    """Rows set aside; those that wait for each other in a circle can be tried again, together."""
    places = {(one.target, frozenset(zip(one.columns, one.key, strict=True))): one.key for one in rows}
    above = {}
    for one in rows:
        if one.parent is not None and one.parent.key:
            name, parts = one.parent.target, frozenset(zip(one.parent.columns, one.parent.key, strict=True))
            above[one.target, one.key] = (name, places.get((name, parts), one.parent.key))
    waiting = {start for start in above if _leads_back(start, above)}
    return tuple(
        replace(one, parent=replace(one.parent, came=True))
        if one.parent is not None and (one.target, one.key) in waiting
        else one
        for one in rows
    )


def _leads_back(start: tuple[str, KeyText], above: dict[tuple[str, KeyText], tuple[str, KeyText]]) -> bool:
    at = above.get(start)
    for _ in above:
        if at is None or at == start:
            break
        at = above.get(at)
    return at == start


def here(chunk: Any | None) -> pa.Table | None:
    """Dump rows on the driver; those that executors have staged are mapped again."""
    return chunk if chunk is None or isinstance(chunk, pa.Table) else chunk.here()


def set_aside(rows: RowsOfTable, key: KeyText) -> WithoutRow | None:
    """Rows of one table without the row of a key that the target refuses; None where it isn't among them.

    What the target has of the key vanishes: an old version must not look like the present one. A dump row whose log
    row is in the batch too is left out alone: the log row is newer, and is tried first; or it says that the row was
    deleted since, and there is nothing to set aside.
    """
    chunk, before, after, name = here(rows.chunk), rows.before, rows.after, list(rows.table.key)
    dumped, logged = _places(chunk, name, key), _places(after, name, key)
    if any(_NULL in text for text in key):
        return None  # no ledger could name it, or it names no row
    vanishes = before is not None and key in key_texts(before, name)
    if dumped and (logged or vanishes):
        return WithoutRow(_without(chunk, dumped), before, after, None)
    if len(dumped) + len(logged) != 1:
        return None  # none, or two rows of one key, of which neither is right
    bearer: pa.Table = after if logged else chunk
    row = bearer.slice((*logged, *dumped)[0], 1)
    if not vanishes and not rows.replaces:
        parts = [row.select(name)] if before is None else [before.select(name), row.select(name)]
        before = pa.concat_tables(parts, promote_options="permissive")
    return WithoutRow(_without(chunk, dumped), before, _without(after, logged), row_text(row))


def row_text(row: pa.Table) -> str:
    """One row as text; the end of a long one is left out."""
    text = ", ".join(f"{name}={shown(row[name][0])!r}" for name in row.column_names)
    return cut(text, _ROW_TEXT)


def cut(text: str, most: int) -> str:
    """A text of ``most`` characters at most, as a server of any encoding of Unicode holds it."""
    whole = text.encode("utf-8", "replace").decode().replace("\0", " ")
    return whole if len(whole) <= most else whole[: most - len(_LEFT_OUT)] + _LEFT_OUT


def _named(rows: RowsOfTable) -> set[KeyText]:
    parts = (here(rows.chunk), rows.before, rows.after, rows.doubted)
    return {key for part in parts if part is not None for key in key_texts(part, rows.table.key)}


def _folded(values: KeyText) -> KeyText:
    """Values without what a collation may pass over: case, accents, blanks at the end. Two that are taken for one by
    mistake cost a row that is tried in vain."""
    return tuple(text.rstrip().lower() if text.isascii() else _plain(text) for text in values)


def _plain(text: str) -> str:
    bare = (one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return "".join(bare).rstrip().casefold()


def _written(rows: RowsOfTable, columns: Sequence[str]) -> set[KeyText]:
    """The values that these columns have in rows that are written."""
    parts = [part for part in (here(rows.chunk), rows.after) if part is not None]
    return {
        values for part in parts if {*columns} <= {*part.column_names} for values in key_texts(part, columns)
    }


def _places(part: pa.Table | None, names: Sequence[str], key: KeyText) -> list[int]:
    if part is None or not part.num_rows:
        return []
    return [place for place, found in enumerate(key_texts(part, names)) if found == key]


def _without(part: pa.Table | None, places: Collection[int]) -> pa.Table | None:
    if part is None or not places:
        return part
    kept = np.ones(part.num_rows, dtype=bool)
    kept[list(places)] = False
    return part.filter(pa.array(kept))
