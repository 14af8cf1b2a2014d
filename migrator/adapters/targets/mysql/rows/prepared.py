"""One table's share of a batch, encoded and checked before the transaction begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.mysql.rows.encode import Encoded, encode
from migrator.adapters.targets.mysql.rows.merge import Merge, keys_body, rows_body, saved_body
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.structure import Storage, Structure
from migrator.adapters.targets.shared.prepared import PreparedRows
from migrator.adapters.targets.shared.refused import CORRECT_REMEDY
from migrator.adapters.targets.shared.rows import (
    check_columns,
    duplicate,
    filled,
    named_row,
    no_key,
    row_twice,
    together,
)
from migrator.columnar.bad_rows import key_at
from migrator.errors import TargetError, of_row
from migrator.ports.target import TargetRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(PreparedRows[Structure]):
    """Rows of one target table, with what this engine loads and the statements that merge it.

    Attributes:
        encoded: the rows column by column as text.
        before: encoded key columns of the before rows, or None.
        merge: the statements.
        doubted: encoded doubted keys, or None.
    """

    encoded: tuple[Encoded, ...]
    before: tuple[Encoded, ...] | None
    merge: Merge
    doubted: tuple[Encoded, ...] | None = None

    def staged(self) -> list[tuple[str, int, int]]:
        """The staging tables of rows, with the first row and the end of each."""
        found = [
            (self.merge.chunk, 0, self.chunk_rows),
            (self.merge.after, self.chunk_rows, self.source.num_rows),
        ]
        return [one for one in found if one[0]]

    def texts(self, first: int, last: int) -> pa.Table:
        """Rows ``first`` to ``last`` (exclusive) as the staging table's columns, their numbers first."""
        numbers = pa.chunked_array([pa.array(range(first, last), pa.int64()).cast(pa.large_string())])
        rows = [one.values.slice(first, last - first) for one in self.encoded]
        return pa.table([numbers, *rows], names=["n", *(f"c{place}" for place in range(len(rows)))])

    @staticmethod
    def key_texts(encoded: Sequence[Encoded]) -> pa.Table:
        """Keys, numbered."""
        keys = [one.values for one in encoded]
        numbers = pa.chunked_array([pa.array(range(len(keys[0])), pa.int64()).cast(pa.large_string())])
        return pa.table([numbers, *keys], names=["n", *(f"k{place}" for place in range(len(keys)))])

    def check_keys(self) -> None:
        """Refuses two chunk rows, or two after rows, of one key. Raises ``TargetError`` naming table and key.

        Keys that differ in spelling only (a collation takes them for equal) are found when they are staged.
        """
        keys = [self.encoded[self.merge.written.index(name)].values for name in self.structure.table.key]
        for _, first, last in self.staged():
            row = row_twice(keys, first, last)
            if row is not None:
                raise duplicate(self.id, self.key_of(row))

    def check_nulls(self) -> None:
        """Refuses NULL where the column doesn't take it: the server would make a number or the time of it."""
        for name in self.merge.written:
            storage = self.structure.column(name)
            values = self.source[name]
            if storage is None or storage.column.nullable or not values.null_count:
                continue
            row = int(pc.index(values.is_null(), True).as_py())
            error = TargetError(
                f"the target refuses a row of {self.id}",
                where=f"{self.id}, {self.key_of(row)}, column {name}",
                cause=f"column {name} is NOT NULL, and the mapping gives NULL",
                remedy=CORRECT_REMEDY,
            )
            bad = name not in self.structure.table.key
            key = key_at(self.source, self.structure.table.key, row) if bad else None
            raise of_row(error, str(self.id), key)


def prepare(structure: Structure, rows: TargetRows, staging: StagingTables) -> Prepared | None:
    """Encodes one table's rows and finds its staging tables; None when there is nothing to do.

    To be called outside of a transaction. Raises ``TargetError`` naming table and column.
    """
    chunk, before, after = (filled(part) for part in (rows.chunk, rows.before, rows.after))
    doubted = filled(rows.doubted)
    parts = [part for part in (chunk, after) if part is not None]
    if not parts and before is None and doubted is None:
        return None
    if not structure.table.key:
        raise no_key(structure.table.id)
    model: pa.Table = parts[0] if parts else before if before is not None else doubted
    written = tuple(model.column_names)
    check_columns(structure.table, written)
    source = together(structure.table.id, written, parts)
    encoded = tuple(_encoded(structure, name, source) for name in written)
    keys, unsure = _keys(structure, before), _keys(structure, doubted)
    prepared = Prepared(
        structure=structure,
        strict=rows.strict_inserts,
        source=source,
        chunk_rows=0 if chunk is None else chunk.num_rows,
        encoded=encoded,
        before=keys,
        merge=_merge(structure, written, staging, chunk is not None, after is not None, keys, unsure),
        doubted=unsure,
        replaces=rows.replaces,
    )
    prepared.check_nulls()
    prepared.check_keys()
    return prepared


def _merge(
    structure: Structure,
    written: tuple[str, ...],
    staging: StagingTables,
    chunk: bool,
    after: bool,
    before: tuple[Encoded, ...] | None,
    doubted: tuple[Encoded, ...] | None,
) -> Merge:
    table, key, kept = str(structure.table.id), structure.table.key, structure.kept(written)
    body = rows_body(_storages(structure, written), key)
    saved = ""
    if kept and (chunk or after) and structure.moving(written):
        columns = saved_body(_storages(structure, key), _storages(structure, kept))
        saved = staging.table(f"{table} saved", columns)
    return Merge(
        structure=structure,
        written=written,
        chunk=staging.table(f"{table} chunk", body) if chunk else "",
        after=staging.table(f"{table} after", body) if after else "",
        before=staging.table(f"{table} before", keys_body(_storages(structure, key))) if before else "",
        saved=saved,
        doubted=staging.table(f"{table} doubted", keys_body(_storages(structure, key))) if doubted else "",
    )


def _keys(structure: Structure, rows: pa.Table | None) -> tuple[Encoded, ...] | None:
    """The key columns of rows, encoded."""
    if rows is None:
        return None
    check_columns(structure.table, tuple(rows.column_names))
    return tuple(_encoded(structure, name, rows) for name in structure.table.key)


def _storages(structure: Structure, names: Sequence[str]) -> list[Storage]:
    found = {one.column.name: one for one in structure.storage}
    return [found[name] for name in names]


def _encoded(structure: Structure, name: str, rows: pa.Table) -> Encoded:
    (storage,) = _storages(structure, [name])
    table = structure.table

    def encoded(values: pa.ChunkedArray) -> Encoded:
        return encode(storage, values, str(table.id))

    try:
        return encoded(rows[name])
    except TargetError as error:
        raise named_row(error, rows, table.key, name, encoded) from None
