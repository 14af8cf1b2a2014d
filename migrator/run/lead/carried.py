"""The rows that the target has been given so far: a target that joins a begun migration needs those before, too.

The ledger's checkpoint says it, as pairs of a target and a source table, moved with the rows. Without it a target
that was added, or taken out and put back, would get changes only, and nobody would notice. It says as well how each
target's rows were mapped, and where: a target whose mapping was changed is one that joins. So is one whose table was
dropped and made again, or emptied, while nobody led.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrator.model.progress import MIRROR, Checkpoint, Mapped, TableIdentity
from migrator.model.requests.request import WHOLE, DumpRequest, RequestBook, RequestState
from migrator.model.table import TableId
from migrator.ports.target import TargetBatch
from migrator.run.lead.differing import Differing, differing
from migrator.run.lead.emptied import emptied, forgotten
from migrator.run.lead.incomplete import Incomplete, Why, refusal
from transforms.analysis.fingerprint import Fingerprint
from transforms.analysis.plan import MappingKind, MappingPlan


@dataclass(frozen=True, slots=True)
class LateTargets:
    """Actions on a target that joins later.

    Attributes:
        holds_rows: tells whether it has any.
        forget_filled: has a joined one filled anew.
        accepted: targets whose rows so far are what the mapping makes, on an operator's word.
        identities: returns the identities of target tables; those that the server shows none of are absent.
        identity_stays: whether an identity outlives ALTER, TRUNCATE and the like. If not, only a table is taken for
            another one that is empty, or beside one that may be what it was (``renamed_to``).
        keep: keeps an act in the history: its name and what was done.
        filled: returns the joined targets that are in step with the mirror; one that an operator has had forgotten
            (`migrator remap`) isn't among them.
        besides: tables beside targets, which next mappings fill.
        begin: has all rows of source tables asked for, for a target that has none, or for one of those beside: what
            that has goes first. None where nobody asks: such a target is refused.
        renamed_to: returns a table that may be what a target was before, under another name; else "".
        alone: tells whether nobody but us was ever let write into targets. Where others were, what is empty was
            emptied rightly, as far as anybody can tell.
    """

    holds_rows: Callable[[str], bool]
    forget_filled: Callable[[str], bool]
    accepted: frozenset[str] = frozenset()
    identities: Callable[[Sequence[str]], Mapping[str, TableIdentity]] = lambda _: {}
    identity_stays: bool = False
    keep: Callable[[str, str], None] = lambda act, detail: None
    filled: Callable[[], Collection[str]] = tuple
    besides: Collection[str] = ()
    begin: Callable[[str, Sequence[TableId]], None] | None = None
    renamed_to: Callable[[str, TableIdentity], str] = lambda target, identity: ""
    alone: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Carried:
    """The part of the ledger's checkpoint that a run carries on: see ``Checkpoint`` for its fields.

    ``warnings``: what couldn't be compared with the mappings before.
    """

    fed: tuple[tuple[str, TableId], ...]
    awaited: tuple[tuple[str, TableId, str], ...] = ()
    mapped: tuple[Mapped, ...] = ()
    warnings: tuple[str, ...] = ()
    _written: set[str] = field(default_factory=set)

    def noted(self, batch: TargetBatch) -> TargetBatch:
        """The batch, which says so in the ledger."""
        self._written.update(one.table.id.name for one in batch.rows if one.brings_rows())
        mapped = tuple(
            replace(one, written=one.written or one.target in self._written) for one in self.mapped
        )
        said = replace(batch.checkpoint, fed=self.fed, awaited=self.awaited, mapped=mapped)
        return replace(batch, checkpoint=said)


def carry_over(
    applied: Checkpoint | None,
    book: Callable[[], RequestBook],
    plans: Mapping[str, MappingPlan],
    late: LateTargets | None,
    mapped: tuple[Mapped, ...] = (),
) -> Carried:
    """Returns which rows the target has of these mappings, and will have once dumps that were asked for are done.

    Args:
        applied: the ledger's.
        book: reads the dump requests.
        plans: of the mapping as it is now.
        late: see there; None takes every target for one that was always there.
        mapped: how each target is mapped now.

    Raises ``MappingError`` for a target that lacks rows which nobody has asked for, or has some of another mapping,
    ``TargetError`` for one whose table isn't the one that rows were written into.
    """
    pairs = {name: _tables(plan) for name, plan in plans.items()}
    joined = {name for name, plan in plans.items() if plan.kind is MappingKind.GRAIN}
    mirrored = mirrored_tables(plans.values())
    every = [*((name, table) for name in pairs for table in pairs[name]), *((MIRROR, t) for t in mirrored)]
    if applied is None or applied.fed is None or late is None:
        begun_before = tuple(replace(one, written=applied is not None) for one in mapped)
        return Carried(tuple(sorted(every)), mapped=begun_before)
    compared, alone = _compared(applied.mapped or (), mapped, plans), late.alone()
    replaced = _replaced(applied.mapped or (), mapped, joined, late, alone)
    differs = {name for name, found in compared.items() if found.others}
    empty = _emptied(applied, pairs, late) if alone else set()
    anew = (replaced | differs | empty) - late.accepted
    fed, awaited = _so_far(applied, book(), anew)
    begun = {dump.table for dump in applied.dumps if dump.done or dump.chunks}
    missing = [pair for pair in every if pair not in fed and pair not in awaited]
    unasked = _unasked(late, joined & differs & anew - replaced)
    incomplete, refilled = [], []
    for name in sorted({name for name, _ in missing} - {MIRROR}):
        needed = sorted(set(pairs[name]) & begun)
        if name in unasked:
            incomplete.append(Incomplete(name, Why.CHANGED, (), compared[name].said(), joined=True))
            continue
        if name in joined:
            refilled.append(name)  # from the mirror, which has all that it needs, or will once it is dumped
            continue
        asked, lacks = _asked(late, applied, book, name, needed, joins=name not in anew)
        if lacks:
            why = _why(name, anew, replaced, empty - differs)
            said = compared[name].said() if name in compared else ""
            incomplete.append(Incomplete(name, why, tuple(needed), said))
        awaited |= {(name, table): request for table, request in asked.items()}
    if incomplete:
        raise refusal(incomplete)
    warned = _go_on(late, compared, replaced, empty, refilled)
    waits = {pair: request for pair, request in awaited.items() if pair in every}
    return Carried(
        tuple(sorted(pair for pair in every if pair not in waits)),
        tuple(sorted((name, table, request) for (name, table), request in waits.items())),
        _written_so_far(applied, mapped, anew | _cleared(late, missing), empty, alone),
        (*warned, *_warnings(compared, {*_otherwise(applied.mapped or (), mapped, joined)} - replaced)),
    )


def _emptied(applied: Checkpoint, pairs: Mapping[str, Collection[TableId]], late: LateTargets) -> set[str]:
    return emptied(applied.mapped or (), pairs, late.holds_rows) - forgotten(applied, pairs)


def _why(name: str, anew: set[str], replaced: set[str], empty: set[str]) -> Why:
    if name not in anew:
        return Why.ADDED
    return Why.REPLACED if name in replaced else Why.EMPTIED if name in empty else Why.CHANGED


def _asked(
    late: LateTargets,
    applied: Checkpoint,
    book: Callable[[], RequestBook],
    name: str,
    needed: list[TableId],
    joins: bool,
) -> tuple[dict[TableId, str], bool]:
    """Returns the request of each table that will bring all rows, and whether the target can't go on all the same.

    The rows of a table beside are asked for, and those of a target that joins without any: nobody else has a say in
    them. An operator has to decide about rows that are there, or were.

    Args:
        joins: whether the target is new, or was put back.
    """
    holds, asked = late.holds_rows(name), asked_for(applied, book(), needed)
    beside = name in late.besides
    if late.begin is None or (not beside and (holds or not joins)):
        return asked, holds or len(asked) < len(needed)
    if len(asked) < len(needed) or (beside and holds):
        late.begin(name, needed)
        asked = asked_for(applied, book(), needed)
    return asked, False


def _cleared(late: LateTargets, missing: Iterable[tuple[str, TableId]]) -> set[str]:
    """Returns the tables beside that lack rows: this start has emptied those that had some."""
    return {name for name, _ in missing if name in late.besides}


def _unasked(late: LateTargets, names: set[str]) -> set[str]:
    """Returns those of some joined targets that no operator has had forgotten: their rows stay until one does."""
    return names & {*late.filled()} if names else set()


def _go_on(
    late: LateTargets,
    compared: Mapping[str, Differing],
    replaced: set[str],
    empty: set[str],
    refilled: Sequence[str],
) -> tuple[str, ...]:
    """Has joined targets filled anew, and keeps in the history which other mappings the run goes on with, and in what
    they differ. Returns warnings of targets that somebody emptied."""
    for name in refilled:
        late.forget_filled(name)
    for name, found in sorted(compared.items()):
        if name in late.accepted and (found.words or name in replaced | empty):
            why = Why.REPLACED if name in replaced else Why.EMPTIED
            late.keep("accept", f"{name}: {found.said() or why.value}")
        elif name in refilled and (found.others or name in empty - replaced):
            late.keep("derive anew", f"{name}: {found.said() if found.others else Why.EMPTIED.value}")
        elif found.words and found.doubt:
            late.keep("uncompared", _doubtful(name, found))
        elif found.words:
            late.keep("mapping", f"{name}: {found.said()}")
    return tuple(
        f"somebody emptied {name} (TRUNCATE, or DELETE of all rows): it is derived anew from the mirror"
        for name in refilled
        if name in empty - replaced
    )


def _doubtful(name: str, found: Differing) -> str:
    differ = f"; as far as can be seen there differ: {found.said()}" if found.words else ""
    return (
        f"the mapping of {name} can't be compared with the one that made its rows so far: {found.doubt}{differ}."
        " `migrator verify` tells whether they are the same"
    )


def _warnings(compared: Mapping[str, Differing], altered: set[str]) -> tuple[str, ...]:
    """``altered``: targets whose tables may have been, or may be other ones."""
    doubtful = (_doubtful(name, found) for name, found in sorted(compared.items()) if found.doubt)
    moved = (
        f"the table of {name} was altered since rows of it were applied, or is another one with rows: the server"
        " doesn't tell. `migrator verify` tells whether they are right"
        for name in sorted(altered)
    )
    return (*doubtful, *moved)


def mapped_now(
    plans: Mapping[str, MappingPlan],
    schemas: Mapping[str, str],
    content: Callable[[MappingPlan], Fingerprint],
    identities: Mapping[str, TableIdentity],
) -> tuple[Mapped, ...]:
    """Returns the ledger's entry for each target's mapping.

    Args:
        plans: of the mapping as it is now.
        schemas: where each target's table is.
        content: takes a mapping's fingerprint.
        identities: which table each one is.
    """
    taken = {name: content(plan) for name, plan in plans.items()}
    return tuple(
        Mapped(
            name,
            schemas[name],
            _shape(plan),
            _columns(plan),
            taken[name].text,
            taken[name].basis,
            identities.get(name),
            outline=taken[name].outline,
        )
        for name, plan in plans.items()
    )


def _shape(plan: MappingPlan) -> str:
    """Returns as one text the parts of a mapping whose change makes other rows of all rows. A joined mapping's grain
    and links aren't among them: they have a digest of their own."""
    target = plan.target
    tables = sorted(schema.id.name for schema in plan.schemas.values())
    return json.dumps([plan.kind.value, target.key, tables, target.surrogates])


def _columns(plan: MappingPlan) -> tuple[str, ...]:
    return tuple(sorted(column.name for column in plan.columns))


def _compared(
    before: Iterable[Mapped], now: Iterable[Mapped], plans: Mapping[str, MappingPlan]
) -> dict[str, Differing]:
    """Returns, of each target that had a mapping before, in what it differs."""
    known = {mapped.target: mapped for mapped in before}
    return {
        new.target: differing(known[new.target], new, _source_columns(plans[new.target]))
        for new in now
        if new.target in known
    }


def _source_columns(plan: MappingPlan) -> set[str]:
    return {f"{name}.{column}" for name, schema in plan.schemas.items() for column in schema.names()}


def _replaced(
    before: Iterable[Mapped], now: Iterable[Mapped], joined: set[str], late: LateTargets, alone: bool
) -> set[str]:
    """Returns the targets whose rows so far went into another table than the one that has the name now.

    One that is empty, as the last batch left it, or others, was altered: no row of it is gone.
    """
    rightly = {one.target for one in before if one.holds is False or not alone}
    return {
        name
        for name, identity in _otherwise(before, now, joined).items()
        if late.identity_stays
        or (name not in rightly and not late.holds_rows(name))
        or late.renamed_to(name, identity)
    }


def _otherwise(before: Iterable[Mapped], now: Iterable[Mapped], joined: set[str]) -> dict[str, TableIdentity]:
    """Returns, of targets whose tables have another identity now, the one that they had when rows were applied."""
    known = {mapped.target: mapped for mapped in before}
    found = {new.target: (known[new.target].identity, new.identity) for new in now if new.target in known}
    return {
        name: was
        for name, (was, identity) in found.items()
        if was is not None and (known[name].written or name in joined) and _another(was, identity)
    }


def _another(old: TableIdentity, new: TableIdentity | None) -> bool:
    """Tells whether the table is another one, in a target that is the same. A target that was put back, or moved, as
    a whole has all rows that its ledger tells of."""
    return new is not None and old.ledger == new.ledger and old.table != new.table


def _written_so_far(
    applied: Checkpoint, now: Sequence[Mapped], anew: set[str], empty: set[str], alone: bool
) -> tuple[Mapped, ...]:
    """Returns the entries, which say whether rows were written into the table. Versions before didn't note it.

    Which tables have rows isn't known of those that get theirs anew, nor where others write into them.
    """
    before, targets = applied.mapped or (), {new.target for new in now}
    anew = anew | forgotten(applied, targets)
    written = {mapped.target for mapped in before if mapped.written or mapped.identity is None} - anew
    unknown = anew | empty if alone else targets
    holds = {mapped.target: mapped.holds for mapped in before if mapped.target not in unknown}
    return tuple(replace(new, written=new.target in written, holds=holds.get(new.target)) for new in now)


def _tables(plan: MappingPlan) -> list[TableId]:
    linked = (node.schema.id for reach in plan.reaches for node in reach.nodes)
    return sorted({*(schema.id for schema in plan.schemas.values()), *linked})


def _so_far(
    applied: Checkpoint, book: RequestBook, changed: set[str]
) -> tuple[set[tuple[str, TableId]], dict[tuple[str, TableId], str]]:
    """Pairs that are complete, and those that wait for a request. One that was given up brings nothing any more.

    Of targets that were changed there are none.
    """
    states = {request.name(): request.state for request in book.requests}
    fed = {(name, table) for name, table in applied.fed or () if name not in changed}
    awaited = {}
    for name, table, request in applied.awaited:
        if name in changed:
            continue
        if states.get(request) is RequestState.DONE:
            fed.add((name, table))
        elif states.get(request) in (RequestState.RUNNING, RequestState.PAUSED):
            awaited[name, table] = request
    return fed, awaited


def asked_for(applied: Checkpoint, book: RequestBook, tables: Iterable[TableId]) -> dict[TableId, str]:
    """Returns the request of each table that will bring all of its rows, none of which the target was given yet."""
    begun = {(dump.request, dump.table) for dump in applied.requests if dump.done or dump.chunks}
    found = {}
    for table in tables:
        for request in book.requests:
            if _whole(request) and table in request.tables and (request.name(), table) not in begun:
                found[table] = request.name()
    return found


def _whole(request: DumpRequest) -> bool:
    return request.is_open() and request.scope == WHOLE and not request.doubts


def mirrored_tables(plans: Iterable[MappingPlan]) -> frozenset[TableId]:
    """Returns the source tables of which a mirror has the rows."""
    return frozenset(table for plan in plans if plan.kind is MappingKind.GRAIN for table in _tables(plan))


def unmirrored(applied: Checkpoint | None, plans: Iterable[MappingPlan]) -> frozenset[TableId]:
    """Returns the tables that joined mappings read, and of which the mirror lacks rows that went by: they are dumped
    once more.

    ``applied``: the ledger's. One of an earlier version doesn't say so.
    """
    if applied is None or applied.fed is None:
        return frozenset()
    captured = {dump.table for dump in applied.dumps}
    return frozenset(t for t in mirrored_tables(plans) if t in captured and (MIRROR, t) not in applied.fed)
