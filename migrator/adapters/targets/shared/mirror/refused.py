"""Source rows that a mirror's server refuses: whatever is left once types, lengths and characters are no matter."""

from __future__ import annotations

import pyarrow as pa

from migrator.errors import TargetError
from migrator.model.table import TableSchema

_SHOWN = 60


def not_held(schema: TableSchema, where: str, cause: str, rows: pa.Table, row: int | None) -> TargetError:
    """The error a user sees: of a row that is known its key, and the column of its longest value."""
    place = where
    if row is not None:
        (values,) = rows.slice(row, 1).to_pylist()
        key = ", ".join(f"{name}={_shown(values.get(name))!r}" for name in schema.key)
        longest = max(values, key=lambda name: len(str(values[name])))
        place = f"{schema.id}, {key}, the longest value: {longest} = {_shown(values[longest])!r} ({where})"
    return TargetError(
        f"a row of {schema.id} can't be kept in the mirror",
        where=place,
        cause=cause,
        remedy="let no mapping that joins or groups read the table, and start again. Or correct the row in the source"
        " and start the migration anew (docs/how-to/start-anew.md): the row that was read is in the event"
        " log already",
    )


def _shown(value: object) -> object:
    if isinstance(value, (str, bytes)) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}... ({len(value)} long)"
    return value
