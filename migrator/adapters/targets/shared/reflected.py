"""Checks of target tables that were read from the catalogue, whatever the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.model.target import TargetTable

_SEEN_WITHIN_S, _LOOK_AGAIN_S = 3.0, 0.05
"""Seconds for which a table may be out of sight while somebody changes its triggers."""


def require_tables(found: Iterable[TableId], names: Sequence[str], where: str) -> None:
    """Raises ``TargetError`` naming the tables that don't exist. ``where``: the schema or database, for messages."""
    present = {table.name for table in found}
    missing = [name for name in names if name not in present]
    if missing:
        raise TargetError(
            f"the target has no table {', '.join(missing)}",
            where=where,
            cause="the mapping writes to it, but no revision has created it (views don't count)",
            remedy="run `migrator schema upgrade`, or correct the name in the mapping",
        )


def check_unchanged(known: Iterable[TargetTable], found: Sequence[Sequence[object]]) -> None:
    """Raises ``TargetError`` naming the first column that is gone or has another type.

    To be asked at the end of the transaction: what it wrote is locked against changes by then. A column that became
    narrower would else round or cut what was encoded for the wider one.

    Args:
        known: the tables as they were read when the run began.
        found: table, column and type of each column that is there now, and maybe more.
    """
    now = {(_text(table), _text(column)): _text(kind) for table, column, kind, *_ in found}
    for table in known:
        if table.id.name in unseen([table.id.name], found):
            raise TargetError(
                f"the target table {table.id} can't be seen",
                where=str(table.id),
                cause="it was dropped, or somebody changes its structure, such as its triggers, at the moment",
                remedy="start again; nothing of this batch was written",
                retryable=True,
            )
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


def seen_unchanged(
    known: Sequence[TargetTable], look: Callable[[Sequence[str]], Sequence[Sequence[object]]]
) -> Sequence[Sequence[object]]:
    """Returns what ``look`` finds of the tables (see ``check_unchanged``), once all are seen. Raises as that does."""
    names = [table.id.name for table in known]
    until = time.monotonic() + _SEEN_WITHIN_S
    while True:
        found = look(names)
        if not unseen(names, found) or time.monotonic() > until:
            check_unchanged(known, found)
            return found
        time.sleep(_LOOK_AGAIN_S)


def unseen(names: Iterable[str], found: Sequence[Sequence[object]]) -> set[str]:
    """Returns the tables of which no column was found. MariaDB shows none of a table while its structure changes."""
    return set(names) - {_text(table) for table, *_ in found}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
