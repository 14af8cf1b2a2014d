"""Captured tables whose names other tables have by now: all rows of those are read again, and no other table's.

Online schema changes (gh-ost, pt-online-schema-change, Spirit) end so: a copy that was filled beside the table takes
its name. Which rows differ nobody can tell, so the run begins anew in this process, at the place where it halted.
With the first segment what the target has of the former table goes, then the new one is dumped beside the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from migrator.errors import MappingError, MigratorError, ReplacedError
from migrator.model.table import TableId
from transforms.analysis.plan import MappingKind, MappingPlan


class ReadAgain:
    """One process's dealings with tables that were replaced.

    Args:
        wanted: whether the run may go on with another table without an operator's word.
        adopt: has the changes of such tables captured (see ``SourceCatalog.adopt``).

    Attributes:
        tables: names whose rows the next attempt reads again if others have them.
    """

    def __init__(self, wanted: bool, adopt: Callable[[Sequence[TableId]], None]):
        self._wanted = wanted
        self._adopt = adopt
        self._answered = ""
        self._answered_at = -1
        self.tables: frozenset[TableId] = frozenset()

    def met(self, error: ReplacedError, segments: int) -> bool:
        """Tells whether to start again, after such tables stopped a run. The same words twice: it led nowhere.

        Args:
            error: names them.
            segments: number of segments that this process has captured so far.
        """
        if not self._wanted:
            return False
        said, tables = str(error), {TableId(*table) for table in error.tables}
        if said == self._answered:
            return False
        try:
            self._adopt(sorted(tables))
        except MigratorError as refused:
            error.cause = f"{error.cause}. {refused.what}: {refused.cause}"
            return refused.retryable
        self.tables = frozenset(tables) | (self.tables if segments == self._answered_at else frozenset())
        self._answered, self._answered_at = said, segments
        return True

    def refuse_shared(self, plans: Mapping[str, MappingPlan]) -> None:
        """Raises ``MappingError`` where a row-wise target has rows of such a table and of others: which are which
        isn't kept."""
        for name, plan in plans.items():
            shared = sorted(table.name for table in self.tables if table.name in plan.reads)
            if shared and plan.kind is not MappingKind.GRAIN and len(plan.reads) > 1:
                raise MappingError(
                    f"{', '.join(shared)} was replaced by another table of its name, and target table {name!r} has"
                    " rows of other tables as well",
                    where=plan.target.where(),
                    cause="which of its rows came from the former table isn't kept",
                    remedy="start the migration anew (docs/how-to/start-anew.md). On PostgreSQL the former table may"
                    " have its name again instead: what was written to it meanwhile is in the log",
                )
