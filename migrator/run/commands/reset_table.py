"""One target table started anew, while nobody leads: the next run fills it, and goes on with all others.

It makes of the table a target that joins late (see ``run.lead.carried``), which knows what to do with one. The order,
for whoever is killed in the middle:

====================  ==============================================================================================
killed after          then
====================  ==============================================================================================
the ledger            it says that the target was never given a row, and the target has some: a run refuses by name
the rows              rows of its source tables went by without it, and nobody has asked for them: the next run does
the dump request      done: the next run brings the rows again
====================  ==============================================================================================

A joined target is derived from the mirror, in one transaction with which rows that don't belong vanish: forgetting
that it was filled is all. Its rows stay until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from migrator.errors import MappingError, RequestError
from migrator.model.ledger import Ledger
from migrator.model.requests.request import RequestBook
from migrator.model.table import TableId
from migrator.ports.leadership import Leadership
from migrator.ports.remains import Left, MarkedRemains
from migrator.run.lead.carried import asked_for
from migrator.run.steps import Step


@dataclass(frozen=True, slots=True)
class TableReset:
    """Everything that starting one target anew takes.

    Attributes:
        target: its name.
        forgets: whether the ledger, or the mirror's record, has to forget that it was given rows.
        rows: those that go; None for none.
        tables: the source tables that have to be dumped again.
        joined: whether it is derived from the mirror.
    """

    target: str
    forgets: bool
    rows: Left | None
    tables: tuple[TableId, ...]
    joined: bool = False

    def anything(self) -> bool:
        """Tells whether there is anything to do."""
        return bool(self.forgets or self.rows or self.tables)


def planned(
    target: str, sources: Sequence[str], ledger: Ledger | None, book: RequestBook, rows: Left | None
) -> TableReset:
    """Returns what starting a row-wise target anew takes.

    Args:
        target: its name.
        sources: names of the source tables that its mapping reads.
        ledger: the target's; None before the first run.
        book: the dump requests.
        rows: the target's.

    Raises ``RequestError`` where the ledger can't say of a target that it lacks rows.
    """
    applied = ledger.checkpoint if ledger is not None else None
    if applied is None:
        return TableReset(target, False, None, ())
    if applied.fed is None:
        raise RequestError(
            "the ledger doesn't know yet which target was given which rows",
            where=f"--table {target}",
            cause="a version before wrote it",
            remedy="start `migrator run`, stop it after its next batch, then repeat `migrator reset`",
        )
    begun = [
        dump.table for dump in applied.dumps if (dump.done or dump.chunks) and dump.table.name in sources
    ]
    fed = target in {name for name, *_ in (*applied.fed, *applied.awaited)}
    asked = {} if fed else asked_for(applied, book, begun)
    return TableReset(target, fed, rows, tuple(table for table in sorted(begun) if table not in asked))


def reset_table(
    plan: Callable[[], TableReset],
    shown: TableReset,
    target: MarkedRemains,
    leadership: Leadership,
    ask: Callable[[tuple[TableId, ...]], str],
    step: Step,
) -> str:
    """Starts one row-wise target anew; returns the request that brings its rows, empty if none is needed.

    Args:
        plan: looks again what it takes.
        shown: what was agreed to.
        target: the target's remains.
        leadership: taken for as long as it lasts.
        ask: files a request for a dump of tables, and names it.
        step: called at the points ``reset.marked`` and ``reset.removed``.

    Raises ``FencedError`` while another process leads, ``RequestError`` where it takes something else by now.
    """
    lease = leadership.acquire(target.epoch())
    try:
        now = plan()
        if (now.forgets, now.tables) != (shown.forgets, shown.tables):
            raise RequestError(
                "it takes something else by now than was shown",
                where=f"--table {shown.target}",
                cause="a process of this migration ran meanwhile",
                remedy="give `migrator reset` again, and read what it shows",
            )
        if now.forgets:
            target.forget(lease.epoch, now.target, f"table {now.target}")
        step("reset.marked")
        if now.rows is not None:
            target.remove([now.rows])
        step("reset.removed")
        return ask(now.tables) if now.tables else ""
    finally:
        leadership.release()


def chosen(target: str, known: Sequence[str]) -> None:
    """Raises ``MappingError`` for a target that the mapping doesn't make."""
    if target not in known:
        raise MappingError(
            f"the mapping makes no target table {target!r}",
            where=f"--table {target}",
            cause=f"it makes {', '.join(known)}",
            remedy="name one of these",
        )
