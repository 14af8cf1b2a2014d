"""The rows of a whole table as those of another: the SQL that makes the second hold what the first does."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.adapters.targets.postgres.rows.merge import Merge, columns, qualified, quoted
from migrator.adapters.targets.postgres.structure import Structure
from migrator.model.table import TableId


def merge_of(structure: Structure, written: tuple[str, ...], beside: TableId) -> Merge:
    """The statements of a merge whose staged rows are those of a table of the same columns."""
    places = ", ".join(f"{quoted(name)} AS c{place}" for place, name in enumerate(written))
    rows = f"(SELECT false AS chunk, {places} FROM {qualified(beside)})"
    return Merge(structure, written, ("{0}",) * len(written), rows)


def statements(merge: Merge) -> Iterator[str]:
    """Yields what brings all rows, foreign keys being off: rows that go come first, then those that swap values."""
    yield f"DELETE FROM {merge.target} t WHERE {_nowhere(merge)}"
    if merge.structure.moving(merge.written):
        yield merge.move(strict=False)
    yield merge.upsert(strict=False)


def otherwise(merge: Merge) -> Iterator[str]:
    """Yields queries for a row of which the two tables don't hold the same: its key's values as text."""
    key = merge.structure.table.key
    staged = ", ".join(f"({merge.value(name)})::text" for name in key)
    same = merge.structure.one_key(lambda name: f"t.{quoted(name)}", merge.value)
    new = ", ".join(merge.value(name) for name in merge.written)
    held = (
        f"ROW({columns(merge.written, 't')})::pg_catalog.record OPERATOR(pg_catalog.*=)"
        f" ROW({new})::pg_catalog.record"
    )
    yield (
        f"SELECT {staged} FROM {merge.staging} s LEFT JOIN {merge.target} t ON {same}"
        f" WHERE t.{quoted(key[0])} IS NULL OR NOT ({held}) LIMIT 1"
    )
    stored = ", ".join(f"t.{quoted(name)}::text" for name in key)
    yield f"SELECT {stored} FROM {merge.target} t WHERE {_nowhere(merge)} LIMIT 1"


def _nowhere(merge: Merge) -> str:
    same = merge.structure.one_key(lambda name: f"t.{quoted(name)}", merge.value)
    return f"NOT EXISTS (SELECT 1 FROM {merge.staging} s WHERE {same})"
