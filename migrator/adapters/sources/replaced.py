"""The way on from a table that was replaced by another one of its name."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.model.table import TableId


def all_rows_read(tables: Sequence[TableId], before: Sequence[str] = ()) -> str:
    """Says how to go on with the tables that the names lead to now, for the end of a remedy.

    ``before``: statements that have to be run first.
    """
    named = "".join(f" --table {table.name}" for table in tables)
    return (
        "have all of its rows read: "
        + "".join(f"{statement}; " for statement in before)
        + f"migrator dump start{named}; then start again (the target's rows of the other one are removed; where a"
        " target table has rows of several source tables, start the migration anew instead,"
        " docs/how-to/start-anew.md)"
    )
