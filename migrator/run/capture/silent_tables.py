"""Notices a captured table that fell silent while the tables beside it go on: a writer that died, a job that
stopped.

Measured by the source's own clock, between commits that the log holds, so nobody's clock has to agree with
another's. Where the whole source is idle nothing is said: then no table is worse off than the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from migrator.model.table import TableId


def silent_tables(last_changes: Iterable[tuple[TableId, int]], bound_s: float) -> list[str]:
    """Returns a message for each table whose newest change is older than another table's by more than the bound.

    Args:
        last_changes: see ``Checkpoint.last_changes``. A table that has had no change is not in it, and not
            spoken of.
        bound_s: seconds; 0: nobody asked.
    """
    newest = dict(last_changes)
    if not bound_s or not newest:
        return []
    end_us = max(newest.values())
    quiet = {table: (end_us - at_us) / 1e6 for table, at_us in newest.items()}
    return [
        f"{table} has had no change for {quiet_s:,.0f} s, while other tables had"
        for table, quiet_s in sorted(quiet.items())
        if quiet_s > bound_s
    ]
