"""Identity of the table that a name stands for: the log itself says when another table takes the name.

MySQL and MariaDB have no number of a table that outlives ALTER and TRUNCATE, and their log tells tables by
name. But whatever gives a name to another table stands in the log as a statement: DROP, CREATE, RENAME, ALTER
... RENAME, and those of the whole database. Each of them stops the reader. Once all rows of the table are
asked for, the target's rows of the former one are removed, and what the log has of the name is left out up to
the last such statement: it is of former tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind
from migrator.model.table import TableId

_CAN_BE_FORMER = frozenset((StatementKind.EMPTIED, StatementKind.TRUNCATED, StatementKind.ALTERED))


class FormerTables:
    """The places of the log up to which captured names led to other tables than now.

    Args:
        up_to: for each such name the order of the last statement that gave it to another table.
    """

    def __init__(self, up_to: Mapping[TableId, int] | None = None):
        self._up_to = dict(up_to or {})

    def waits(self, track: Track) -> bool:
        """Tells whether such a statement is still to come after the place where the track stands."""
        if self._up_to:
            here = track.position().order
            self._up_to = {table: order for table, order in self._up_to.items() if here < order}
        return bool(self._up_to)

    def has(self, table: TableId, track: Track) -> bool:
        """Tells whether the open transaction has the name for a former table."""
        return self.waits(track) and table in self._up_to

    def passes(self, statement: Statement, tables: Sequence[TableId], track: Track) -> bool:
        """Tells whether a statement that is refused was about former tables only, of which no row is left anywhere.

        ``tables``: what it is about.
        """
        if statement.kind not in _CAN_BE_FORMER or not tables or not self.waits(track):
            return False
        return all(table in self._up_to for table in tables)


def replaced_by(statement: Statement, captured: Sequence[TableId]) -> tuple[TableId, ...]:
    """The captured tables whose names lead to another table, or to none, after a refused statement."""
    if statement.kind is not StatementKind.EMPTIED or not statement.refused:
        return ()
    return tuple(dict.fromkeys(statement.tables)) or tuple(captured)  # of the database: all of them
