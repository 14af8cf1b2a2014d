"""Mapped rows of one target table, checked before the transaction begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.bad_rows import key_at
from migrator.columnar.shown import key_text, shown
from migrator.errors import CORRECTED_MAPPING, TargetError, of_row
from migrator.model.table import TableId
from migrator.model.target import TargetTable

TELL_APART_REMEDY = (
    "give the key's column in the target a type or collation that tells the two apart, or make their keys differ in"
    " the mapping; or, if only one of the two is in the source, delete the other from the target. Then start again:"
    " nothing of this batch was written. A source row that is corrected or deleted comes later in the event log: it"
    f" helps where both are applied in one batch{CORRECTED_MAPPING}"
)
"""The remedy for two keys that a target takes for one."""


def renamed(error: TargetError, copy: TableId, table: TableId) -> TargetError:
    """An error of a copy of a table as if it were the table's."""

    def text(words: str) -> str:
        named = words.replace(str(copy), str(table)).replace(copy.name, table.name)
        return named.replace(f'"{copy.schema}"', f'"{table.schema}"')

    return type(error)(
        text(error.what),
        where=text(error.where),
        cause=text(error.cause),
        remedy=text(error.remedy),
        retryable=error.retryable,
    )


def duplicate(table: TableId, key: str) -> TargetError:
    """The mapping returned one key twice."""
    return TargetError(
        f"the mapping returned two rows for key {key} of {table}",
        where=f"{table}, {key}",
        cause="a target row must come from one source row (or grain), else the last one would win by chance",
        remedy="correct the mapping or its key, then start again: nothing of this batch was written"
        f"{CORRECTED_MAPPING}",
    )


def row_twice(keys: Sequence[pa.ChunkedArray], first: int, last: int) -> int | None:
    """The first row from ``first`` to ``last`` (exclusive) whose key another of them has too; None without one.

    ``keys``: the key's columns, encoded. Exact for types whose equal values look the same.
    """
    names = [f"k{place}" for place in range(len(keys))]
    rows = pa.table(list(keys), names=names).slice(first, max(last - first, 0))
    if rows.num_rows < 2 or rows.group_by(names).aggregate([]).num_rows == rows.num_rows:
        return None
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    counted = numbered.group_by(names).aggregate([("row", "count"), ("row", "min")])
    twice = counted.filter(pc.greater(counted["row_count"], 1))
    return first + int(pc.min(twice["row_min"]).as_py())


def named_row(
    error: TargetError,
    rows: pa.Table,
    key: Sequence[str],
    column: str,
    encode: Callable[[pa.ChunkedArray], object],
) -> TargetError:
    """The error of a column that can't be encoded, with the key and the value of the first row at fault.

    Args:
        error: what ``encode`` raised of the whole column.
        rows: mapped rows.
        key: the target's.
        column: the one that was encoded.
        encode: raises ``TargetError`` of values that can't be.
    """
    values = rows[column]
    first, last = 0, len(values)

    def refused(start: int, end: int) -> TargetError | None:
        try:
            encode(values.slice(start, end - start))
        except TargetError as found:
            return found
        return None

    while last - first > 1:
        middle = (first + last) // 2
        if refused(first, middle):
            last = middle
        else:
            first = middle
    if last <= first or not (found := refused(first, last)) or not set(key) <= set(rows.column_names):
        return error
    place = key_text(key, [shown(rows[name][first]) for name in key])
    table = error.where.removesuffix(f".{column}")
    named = TargetError(
        error.what,
        where=f"{table}, {place}, column {column}, value {shown(values[first])!r}",
        cause=found.cause,
        remedy=error.remedy,
    )
    return of_row(named, table, key_at(rows, key, first))


def one_key(table: TableId, key: Sequence[str], found: Sequence[object], compares: str) -> TargetError:
    """Two rows have keys that differ, and that the target takes for one.

    Args:
        table: the target table.
        key: its key's columns.
        found: the key's values of both rows, one after the other.
        compares: how the key compares, e.g. ``name by collation ci``.
    """
    one, other = (key_text(key, list(part)) for part in (found[: len(key)], found[len(key) :]))
    return TargetError(
        f"the target takes two keys of {table} for one: {one} and {other}",
        where=f"{table}, {one}, {other}",
        cause=f"two source rows map to it, and the target's key compares {compares}: the last one"
        " would win by chance",
        remedy=TELL_APART_REMEDY,
    )


def compared_by(columns: Sequence[Sequence[object]]) -> str:
    """Describes how a unique index compares, for messages. Takes each column's name, collation (or None) and type."""
    comparisons = [
        f"{name} by collation {collation} ({kind})" for name, collation, kind in columns if collation
    ]
    return (
        f"; the target compares {', '.join(comparisons)}, which may take different texts for one"
        if comparisons
        else ""
    )


def filled(rows: pa.Table | None) -> pa.Table | None:
    """The rows, or None of none."""
    return rows if rows is not None and rows.num_rows else None


def vanishing(
    key: Sequence[str], before: pa.Table | None, after: pa.Table | None, strict: bool
) -> tuple[pa.Table | None, bool]:
    """The before rows that a merge must know of, and whether it still has to tell new rows from those of before.

    Most batches hold updates that keep their keys: what the server would find out by joins (nothing vanishes,
    nothing is new) is seen here, and the before rows needn't be sent. Values that are equal here look the
    same to the server. Where some are equal to the server alone (``citext``), it is asked as ever.

    Args:
        key: the target's.
        before, after: mapped rows, or None of none.
        strict: whether after rows without a before row must not exist yet.
    """
    if before is None or after is None or not set(key) <= {*before.column_names} & {*after.column_names}:
        return before, strict
    old, new = before.select(key), after.select(key)
    if any(pa.types.is_floating(one.type) for one in (*old.columns, *new.columns)):
        return (
            before,
            strict,
        )  # 0.0 and -0.0 are equal here: a row that changes from one to the other would be lost
    if old.equals(new):
        return None, False
    try:
        if strict and new.join(old, list(key), join_type="left anti").num_rows:
            return before, True
        return filled(old.join(new, list(key), join_type="left anti")), False
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type that Arrow doesn't join by
        return before, strict


def only_changed(key: Sequence[str], before: pa.Table | None, after: pa.Table | None) -> bool:
    """Tells, as far as is cheap, whether every after row has a before row of its key, with other values."""
    if before is None or after is None or before.column_names != after.column_names:
        return False
    if not set(key) <= {*after.column_names} or not before.select(key).equals(after.select(key)):
        return False
    try:
        same = pa.chunked_array([pa.repeat(True, after.num_rows)])
        for old, new in zip(before.columns, after.columns, strict=True):
            both_null = pc.and_(pc.is_null(old), pc.is_null(new))
            same = pc.and_(same, pc.or_(pc.fill_null(pc.equal(old, new), False), both_null))
            if not pc.any(same).as_py():
                return True
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type that Arrow doesn't compare
        pass
    return False


def together(table: TableId, written: tuple[str, ...], parts: list[pa.Table]) -> pa.Table:
    """The written columns of all parts. Raises ``TargetError`` when a part has other columns."""
    for part in parts:
        if set(part.column_names) != set(written):
            raise TargetError(
                f"dump rows and log rows of {table} have different columns",
                where=str(table),
                cause=f"{sorted(part.column_names)} against {sorted(written)}",
                remedy="the mapping must return the same columns for every input",
            )
    if not parts:
        return pa.table({name: pa.chunked_array([], pa.null()) for name in written})
    return pa.concat_tables([part.select(written) for part in parts], promote_options="permissive")


def no_key(table: TableId) -> TargetError:
    """The table can't be written."""
    return TargetError(
        f"the target table {table} has no primary key",
        where=str(table),
        cause="rows are updated and deleted by key",
        remedy="add a primary key, or a unique index on NOT NULL columns, in a revision of the target",
    )


def check_columns(table: TargetTable, written: tuple[str, ...]) -> None:
    """Refuses columns that the target hasn't or computes, and a missing key column. Raises ``TargetError``."""
    unknown = [name for name in written if table.column(name) is None]
    generated = [column.name for column in table.columns if column.generated and column.name in written]
    lacking = [name for name in table.key if name not in written]
    for names, what, remedy in (
        (unknown, "has no column", "correct the mapping, or add the column in a revision of the target"),
        (generated, "computes by itself the column", "leave the column out of the mapping"),
        (lacking, "needs for its key the column", "the mapping must return every key column"),
    ):
        if names:
            raise TargetError(
                f"the target table {table.id} {what} {', '.join(names)}", where=str(table.id), remedy=remedy
            )
