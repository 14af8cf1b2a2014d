"""A history's rows as numpy arrays, their keys as small integers shared by all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from migrator.errors import VerifyError
from verify.history.history import PUT, History

Array = npt.NDArray[Any]
MISSING = -1
"""Stands for NULL in columns whose values are never negative (sessions, numbers)."""
ROW_TABLES = (
    "log",
    "deliveries",
    "changes",
    "operations",
    "observations",
    "final_source",
    "final_target",
)
_DENSE_PAIRS = (
    50_000_000  # above, (table, key) pairs are sorted instead of looked up in an array of that length
)


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of a history; a key's number is its index here.

    Attributes:
        tables: names of the tables.
        table: per key, index into ``tables``.
        text: per key, index into ``texts``.
        texts: the distinct key texts.
    """

    tables: tuple[str, ...]
    table: Array
    text: Array
    texts: pa.Array

    def __len__(self) -> int:
        return len(self.table)

    def name(self, key: int) -> str:
        """Names a key for people: ``register 17``."""
        return f"{self.tables[self.table[key]]} {self.texts[int(self.text[key])].as_py()}"

    def of_table(self, name: str) -> Array:
        """Numbers of all keys of a table, ascending."""
        if name not in self.tables:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.table == self.tables.index(name))

    def integers(self, keys: Array) -> Array:
        """Key texts as integers: int64, or Python integers where one is larger. Raises ``VerifyError``."""
        texts = self.texts.take(pa.array(self.text[keys]))
        try:
            return np.asarray(pc.cast(texts, pa.int64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            return np.array([_integer(text) for text in texts.to_pylist()], dtype=object)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise VerifyError(
            f"key {text!r} of a table with numeric keys is no integer",
            remedy="describe the table with numeric_key = false",
        ) from error


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table as arrays of one length.

    ``known`` says whether there is a value; ``value`` is 0 without. Missing sessions and numbers are ``MISSING``.
    """

    key: Array
    session: Array
    number: Array
    kind: Array
    value: Array
    known: Array

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: Array) -> Rows:
        """The rows at ``index``, in that order."""
        return Rows(
            self.key[index],
            self.session[index],
            self.number[index],
            self.kind[index],
            self.value[index],
            self.known[index],
        )

    def hashes(self, seed: int) -> Array:
        """64 bits per row over key, provenance and value; 0 for rows that are not there (``kind`` is not PUT)."""
        mixed = _mix(self.key.astype(np.uint64) + np.uint64(seed))
        for part in (self.session, self.number, self.value, self.known):
            mixed = _mix(mixed ^ part.astype(np.int64).view(np.uint64))
        mixed[self.kind != PUT] = 0
        return mixed


def same_row(left: Rows, right: Rows) -> Array:
    """Marks where two tables of rows, equally long, hold the same row. Where both rows are absent, nothing else is
    compared."""
    there = left.kind == PUT
    equal = (
        (left.session == right.session)
        & (left.number == right.number)
        & (left.value == right.value)
        & (left.known == right.known)
    )
    return np.asarray((there == (right.kind == PUT)) & (~there | equal))


def integers(column: pa.ChunkedArray, missing: int = MISSING) -> Array:
    """An integer column with its NULLs replaced; without NULLs mostly no copy."""
    filled = pc.fill_null(column, missing) if column.null_count else column
    return np.asarray(filled.combine_chunks().to_numpy(zero_copy_only=False))


def encode(history: History) -> tuple[Keys, Mapping[str, Rows]]:
    """All row tables of a history, by name, and the keys that they share."""
    tables = [getattr(history, name) for name in ROW_TABLES]
    table, names = _dictionary(recorded["table"] for recorded in tables)
    text, texts = _dictionary(recorded["key"] for recorded in tables)
    pair = table.astype(np.int64) * max(len(texts), 1) + text
    if len(names) * len(texts) <= _DENSE_PAIRS:
        seen = np.zeros(len(names) * len(texts), bool)
        seen[pair] = True
        used = np.flatnonzero(seen)
        key: Array = (np.cumsum(seen, dtype=np.int32) - 1)[pair]
    else:
        used, inverse = np.unique(pair, return_inverse=True)
        key = inverse.astype(np.int32)
    keys = Keys(tuple(names.to_pylist()), used // max(len(texts), 1), used % max(len(texts), 1), texts)
    ends = np.cumsum([recorded.num_rows for recorded in tables])
    parts = np.split(key, ends[:-1])
    return keys, {
        name: _rows(recorded, part) for name, recorded, part in zip(ROW_TABLES, tables, parts, strict=True)
    }


def _dictionary(columns: Iterable[pa.ChunkedArray]) -> tuple[Array, pa.Array]:
    chunks = [chunk for column in columns for chunk in column.chunks]
    merged = pa.chunked_array(chunks, pa.string())
    if merged.null_count:  # totals have neither table nor key
        merged = pc.fill_null(merged, "")
    encoded = merged.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.empty(0, np.int32), pa.array([], pa.string())
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    return codes, encoded.chunk(0).dictionary


def _rows(table: pa.Table, key: Array) -> Rows:
    return Rows(
        key,
        integers(table["session"]),
        integers(table["number"]),
        integers(table["kind"], 0),
        integers(table["value"], 0),
        np.asarray(table["value"].is_valid().combine_chunks().to_numpy(zero_copy_only=False)),
    )


def _mix(x: Array) -> Array:
    """The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
