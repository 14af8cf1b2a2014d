"""One table's share of a batch, encoded and checked before the transaction begins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.postgres.rows.encode import Encoded, encode
from migrator.adapters.targets.postgres.rows.merge import Merge
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.prepared import PreparedRows
from migrator.adapters.targets.shared.rows import (
    check_columns,
    duplicate,
    filled,
    named_row,
    no_key,
    only_changed,
    row_twice,
    together,
    vanishing,
)
from migrator.errors import TargetError
from migrator.ports.target import TargetRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(PreparedRows[Structure]):
    """Rows of one target table, with what this engine loads and the statements that merge it.

    Attributes:
        encoded: the rows column by column in their binary COPY form.
        before: encoded key columns of the before rows, or None.
        merge: the statements.
        doubted: encoded doubted keys, or None.
        updates: whether all rows are after rows of keys that were there before, each with other values than it had.
    """

    encoded: tuple[Encoded, ...]
    before: pa.Table | None
    merge: Merge
    doubted: pa.Table | None = None
    updates: bool = False

    def direct(self) -> bool:
        """Tells whether the chunk rows may go into the target table itself.

        Not when new rows must not exist yet: a dump row of the same key would be there before them. Nor with
        doubted
        keys: what of them is in the batch is seen from the staging table. Nor beside vanishing keys that may look
        otherwise: a row that takes such a key over would go with it.
        """
        after_rows = self.source.num_rows - self.chunk_rows
        return (
            self.chunk_rows > 0
            and all(one.direct for one in self.encoded)
            and not (self.strict and after_rows)
            and self.doubted is None
            and (self.before is None or self.structure.key_is_exact())
        )

    def for_target(self) -> pa.Table:
        """The chunk rows under the target's column names."""
        rows = pa.table([one.values for one in self.encoded], names=list(self.merge.written))
        return rows.slice(0, self.chunk_rows)

    def for_staging(self, first: int, last: int) -> pa.Table:
        """Rows ``first`` to ``last`` (exclusive) as the staging table's columns; of no chunk where it isn't
        said."""
        chunk_rows = max(min(self.chunk_rows, last) - first, 0)
        names = [f"c{place}" for place in range(len(self.encoded))]
        rows = pa.table([one.values for one in self.encoded], names=names).slice(first, last - first)
        if not chunk_rows:
            return rows
        flags = pa.array([True] * chunk_rows + [False] * (last - first - chunk_rows), pa.bool_())
        return rows.add_column(0, "chunk", flags)

    def span(self) -> tuple[int, int] | None:
        """First and last key, where it is one integer and at least every second one in between is among the
        rows."""
        key, rows = self.structure.table.key, self.source.num_rows
        if len(key) != 1 or not rows:
            return None
        values = self.encoded[self.merge.written.index(key[0])].values
        if not pa.types.is_integer(values.type):
            return None
        ends = pc.min_max(values).as_py()
        first, last = ends["min"], ends["max"]
        return (first, last) if first is not None and last - first < 2 * rows else None

    def check_keys(self, from_row: int = 0) -> None:
        """Refuses two chunk rows, or two after rows, of one key. Raises ``TargetError`` naming table and key.

        Exact for types whose equal values look the same; of the others the server is asked (``Merge.duplicates``).
        """
        keys = [self.encoded[self.merge.written.index(name)].values for name in self.structure.table.key]
        chunks = self.chunk_rows
        for first, last in ((from_row, chunks), (max(from_row, chunks), self.source.num_rows)):
            row = row_twice(keys, first, last)
            if row is not None:
                raise duplicate(self.id, self.key_of(row))


def prepare(structure: Structure, rows: TargetRows, staging: StagingTables) -> Prepared | None:
    """Encodes one table's rows and finds its staging tables; None when there is nothing to do.

    To be called outside of a transaction. Raises ``TargetError`` naming table and column.
    """
    chunk, before, after = (filled(part) for part in (rows.chunk, rows.before, rows.after))
    updates = chunk is None and only_changed(rows.table.key, before, after)
    before, strict = vanishing(rows.table.key, before, after, rows.strict_inserts)
    doubted = filled(rows.doubted)
    if chunk is None and before is None and after is None and doubted is None:
        return None
    table = structure.table
    if not table.key:
        raise no_key(table.id)
    parts = [part for part in (chunk, after) if part is not None]
    model = parts[0] if parts else before if before is not None else doubted
    written = tuple(model.column_names) if model is not None else ()
    check_columns(structure.table, written)
    source = together(structure.table.id, written, parts) if parts else None
    encoded_rows = source if source is not None else _nothing(structure, written)
    encoded = tuple(encoded_column(structure, encoded_rows, name) for name in written)
    keys, unsure = _keys(structure, before), _keys(structure, doubted)
    names = tuple(f"k{place}" for place in range(len(table.key)))
    merge = Merge(
        structure=structure,
        written=written,
        expressions=tuple(one.expression for one in encoded),
        staging=staging.table(str(table.id), _staged_columns(encoded), encoded_rows.num_rows),
        before=""
        if keys is None
        else staging.table(f"{table.id} before", _columns(names, keys), _number(before)),
        key_expressions=() if keys is None else tuple(one.expression for one in keys),
        doubted=""
        if unsure is None
        else staging.table(f"{table.id} doubted", _columns(names, unsure), _number(doubted)),
        doubted_expressions=() if unsure is None else tuple(one.expression for one in unsure),
    )
    return Prepared(
        structure=structure,
        strict=strict,
        source=encoded_rows,
        chunk_rows=0 if chunk is None else chunk.num_rows,
        encoded=encoded,
        before=None if keys is None else pa.table([one.values for one in keys], names=list(names)),
        merge=merge,
        doubted=None if unsure is None else pa.table([one.values for one in unsure], names=list(names)),
        updates=updates,
        replaces=rows.replaces,
    )


def _number(rows: pa.Table | None) -> int:
    return 0 if rows is None else rows.num_rows


def _keys(structure: Structure, rows: pa.Table | None) -> list[Encoded] | None:
    """The key columns of rows, encoded."""
    if rows is None:
        return None
    table = structure.table
    check_columns(table, tuple(rows.column_names))
    return [encoded_column(structure, rows, name) for name in table.key]


def encoded_column(structure: Structure, rows: pa.Table, name: str) -> Encoded:
    """One column of mapped rows in its binary COPY form. Raises ``TargetError`` naming table, key, column,
    value."""
    storage, table = structure.column(name), structure.table

    def encoded(values: pa.ChunkedArray) -> Encoded:
        return encode(storage, values, str(table.id))  # type: ignore[arg-type]

    try:
        return encoded(rows[name])
    except TargetError as error:
        raise named_row(error, rows, table.key, name, encoded) from None


def _staged_columns(encoded: tuple[Encoded, ...]) -> tuple[tuple[str, str], ...]:
    names = tuple(f"c{place}" for place in range(len(encoded)))
    return (("chunk", "boolean NOT NULL DEFAULT false"), *_columns(names, list(encoded)))


def _columns(names: tuple[str, ...], encoded: list[Encoded]) -> tuple[tuple[str, str], ...]:
    return tuple((name, one.staging_type) for name, one in zip(names, encoded, strict=True))


def _nothing(structure: Structure, written: tuple[str, ...]) -> pa.Table:
    return pa.table({name: pa.chunked_array([], pa.null()) for name in written})
