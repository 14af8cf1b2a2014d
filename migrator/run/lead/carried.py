"""Which rows the target has been given so far: a target that joins a begun migration needs those before, too.

The ledger's checkpoint says it, as pairs of a target and a source table, moved with the rows. Without it a target
that was added, or taken out and put back, would get changes only, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from migrator.errors import MappingError
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import WHOLE, DumpRequest, RequestBook, RequestState
from migrator.model.table import TableId
from migrator.ports.target import TargetBatch
from transforms.analysis.plan import MappingKind, MappingPlan

MIRROR = ""
"""Stands for the mirror's copy of a source table, where a target's name would stand."""


@dataclass(frozen=True, slots=True)
class LateTargets:
    """What is done with a target that joins later: ``holds_rows`` asks whether it has any; ``forget_filled`` has a
    joined one filled anew."""

    holds_rows: Callable[[str], bool]
    forget_filled: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Carried:
    """What a run carries on: see ``Checkpoint`` for both."""

    fed: tuple[tuple[str, TableId], ...]
    awaited: tuple[tuple[str, TableId, str], ...] = ()

    def noted(self, batch: TargetBatch) -> TargetBatch:
        """The batch, which says so in the ledger."""
        return replace(batch, checkpoint=replace(batch.checkpoint, fed=self.fed, awaited=self.awaited))


def carry_over(
    applied: Checkpoint | None,
    book: Callable[[], RequestBook],
    plans: Mapping[str, MappingPlan],
    late: LateTargets | None,
) -> Carried:
    """What the target has of these mappings, and will have once dumps that were asked for are done.

    Args:
        applied: the ledger's.
        book: reads the dump requests.
        plans: of the mapping as it is now.
        late: see there; None takes every target for one that was always there.

    Raises ``MappingError`` for a target that lacks rows which nobody has asked for.
    """
    pairs = {name: _tables(plan) for name, plan in plans.items()}
    joined = {name for name, plan in plans.items() if plan.kind is MappingKind.GRAIN}
    mirrored = {table for name in joined for table in pairs[name]}
    every = [*((name, table) for name in pairs for table in pairs[name]), *((MIRROR, t) for t in mirrored)]
    if applied is None or applied.fed is None or late is None:
        return Carried(tuple(sorted(every)))
    fed, awaited = _so_far(applied, book())
    begun = {dump.table for dump in applied.dumps if dump.done or dump.chunks}
    missing = [pair for pair in every if pair[1] in begun and pair not in fed and pair not in awaited]
    _refuse_unmirrored([table for name, table in missing if name == MIRROR])
    for name in sorted({name for name, _ in missing} - {MIRROR}):
        if name in joined:
            late.forget_filled(name)  # the mirror has all that it needs
            continue
        needed = sorted(set(pairs[name]) & begun)
        asked = _asked(applied, book(), needed)
        if late.holds_rows(name) or len(asked) < len(needed):
            raise _incomplete(name, needed)
        awaited |= {(name, table): request for table, request in asked.items()}
    waits = {pair: request for pair, request in awaited.items() if pair in every}
    return Carried(
        tuple(sorted(pair for pair in every if pair not in waits)),
        tuple(sorted((name, table, request) for (name, table), request in waits.items())),
    )


def _tables(plan: MappingPlan) -> list[TableId]:
    linked = (node.schema.id for reach in plan.reaches for node in reach.nodes)
    return sorted({*(schema.id for schema in plan.schemas.values()), *linked})


def _so_far(
    applied: Checkpoint, book: RequestBook
) -> tuple[set[tuple[str, TableId]], dict[tuple[str, TableId], str]]:
    """Pairs that are complete, and those that wait for a request. One that was given up brings nothing any more."""
    states = {request.name(): request.state for request in book.requests}
    fed = set(applied.fed or ())
    awaited = {}
    for name, table, request in applied.awaited:
        if states.get(request) is RequestState.DONE:
            fed.add((name, table))
        elif states.get(request) in (RequestState.RUNNING, RequestState.PAUSED):
            awaited[name, table] = request
    return fed, awaited


def _asked(applied: Checkpoint, book: RequestBook, tables: Iterable[TableId]) -> dict[TableId, str]:
    """The request of each table that will bring all of its rows, none of which the target has been given yet."""
    begun = {(dump.request, dump.table) for dump in applied.requests if dump.done or dump.chunks}
    found = {}
    for table in tables:
        for request in book.requests:
            if _whole(request) and table in request.tables and (request.name(), table) not in begun:
                found[table] = request.name()
    return found


def _whole(request: DumpRequest) -> bool:
    return request.is_open() and request.scope == WHOLE and not request.doubts


def _refuse_unmirrored(tables: list[TableId]) -> None:
    if tables:
        raise MappingError(
            "a joined mapping reads a source table that nothing joined for a while, or ever",
            where=", ".join(map(str, sorted(tables))),
            cause="rows and changes of it went by without being kept in the mirror",
            remedy="start a migration of another name with an empty target, or take the table out of that mapping",
        )


def _incomplete(name: str, tables: list[TableId]) -> MappingError:
    asking = " ".join(f"--table {table.name}" for table in tables)
    return MappingError(
        "a target was added to the mapping, or put back, after rows of its source tables had been applied",
        where=f"target table {name}",
        cause=f"rows of {', '.join(map(str, tables))} went by without it; it would get changes only",
        remedy=f"empty the table ({name}), ask for the rows: migrator dump start {asking}; then start again."
        " Or take the target out of the mapping",
    )
