"""The rows of a whole table as those of another: the SQL that makes the second hold what the first does."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.adapters.targets.mysql.rows.merge import Merge, qualified, quoted, saved_body
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.structure import Structure
from migrator.model.table import TableId


def merge_of(
    structure: Structure, written: tuple[str, ...], beside: TableId, staging: StagingTables
) -> Merge:
    """The statements of a merge whose staged rows are those of a table of the same columns.

    To be called outside of a transaction: what rows keep that are deleted and inserted again needs a table.
    """
    places = ", ".join(f"{quoted(name)} AS c{place}" for place, name in enumerate(written))
    rows = f"(SELECT 0 AS n, {places} FROM {qualified(beside)})"
    key, kept, saved = structure.table.key, structure.kept(written), ""
    if kept and structure.moving(written):
        storages = {one.column.name: one for one in structure.storage}
        body = saved_body([storages[name] for name in key], [storages[name] for name in kept])
        saved = staging.table(f"{structure.table.id} saved", body)
    return Merge(structure, written, after=rows, saved=saved)


def statements(merge: Merge) -> Iterator[str]:
    """Yields what brings all rows, foreign keys being off: rows that go come first, then those that swap values."""
    rows = merge.after
    yield f"DELETE t FROM {merge.target} t WHERE {_nowhere(merge)}"
    if merge.structure.moving(merge.written):
        if merge.saved:
            yield merge.save_moving(rows, strict=False)
        yield merge.move_away(rows, strict=False)
    yield merge.update(rows, strict=False)
    if merge.saved:
        yield merge.insert_again(rows)
    yield merge.insert_missing(rows)


def otherwise(merge: Merge) -> Iterator[str]:
    """Yields queries for a row of which the two tables don't hold the same: its key's values as text."""
    yield merge.otherwise(merge.after)
    texts = ", ".join(f"CAST(t.{quoted(name)} AS CHAR)" for name in merge.key)
    yield f"SELECT {texts} FROM {merge.target} t WHERE {_nowhere(merge)} LIMIT 1"


def _nowhere(merge: Merge) -> str:
    """A condition that no staged row has the key. Not by an outer join: where the rows are those of a partitioned
    table, MySQL finds none of them that way."""
    same = " AND ".join(f"t.{quoted(name)} = s.c{merge.written.index(name)}" for name in merge.key)
    return f"NOT EXISTS (SELECT 1 FROM {merge.after} s WHERE {same})"
