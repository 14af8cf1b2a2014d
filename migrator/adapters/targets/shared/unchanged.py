"""Check that target tables still have the columns that rows were encoded for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrator.errors import TargetError
from migrator.model.target import TargetTable


def check_unchanged(known: Iterable[TargetTable], found: Sequence[Sequence[object]]) -> None:
    """Raises ``TargetError`` naming the first column that is gone or has another type.

    To be asked at the end of the transaction: what it wrote is locked against changes by then. A column that became
    narrower would else round or cut what was encoded for the wider one.

    Args:
        known: the tables as they were read when the run began.
        found: table, column and type of each column that is there now.
    """
    now = {(_text(table), _text(column)): _text(kind) for table, column, kind in found}
    for table in known:
        for column in table.columns:
            kind = now.get((table.id.name, column.name))
            if kind == column.native_type:
                continue
            raise TargetError(
                f"the target table {table.id} was changed while we run",
                where=f"{table.id}, column {column.name}",
                cause=f"it was {column.native_type}, and is {kind or 'gone'}: what was made for it could be cut",
                remedy="start again: columns are read anew, and a value that they don't hold is refused by its row;"
                " nothing of this batch was written",
            )


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
