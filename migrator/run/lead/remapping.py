"""Next mappings of row-wise targets under a leader: filled beside the stream, switched to, tidied up after.

A table beside is a target that joined later (see ``run.lead.carried``), whose function is the one declared as next.
The attempt that has switched ends, and the next one maps the target by that function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from migrator.errors import MappingError, TargetError
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint, Phase, Remap
from migrator.model.remaps.remap import (
    awaited_requests,
    filling,
    in_force,
    moved,
    switched,
    whole,
)
from migrator.model.requests.request import WHOLE, RequestBook, new_token, number_of
from migrator.model.table import TableId
from migrator.ports.besides import Besides
from migrator.ports.requests import RequestStore
from migrator.ports.target import Target, TargetBatch
from migrator.run.lead.carried import Carried, LateTargets
from migrator.run.lead.lead import Lead, SureTarget
from migrator.run.progress import Progress
from migrator.run.steps import Step
from transforms import nexts
from transforms.analysis.plan import MappingPlan
from transforms.registry import Mapping as TargetMappings

_ABOUT = "remap"


@dataclass(frozen=True, slots=True)
class Remapping:
    """The next mappings of one leader.

    Attributes:
        port: the tables beside; None in a run without a ledger that could have any.
        epoch: the leader's.
        remaps: what the ledger says once it is tidied up.
    """

    port: Besides | None
    epoch: int
    remaps: tuple[Remap, ...] = ()

    def applied(self, mapping: TargetMappings) -> TargetMappings:
        """The mapping as it is applied, with a target more for each table beside that is filled."""
        besides = {one.target: one.beside for one in filling(self.remaps)}
        return nexts.in_force(mapping, in_force(self.remaps), besides)

    def late(
        self, late: LateTargets | None, requests: RequestStore, known: Sequence[Checkpoint]
    ) -> LateTargets | None:
        """Actions on targets that join later, those tables among them: their rows are asked for.

        Args:
            late: for all others.
            requests: where their rows are asked for.
            known: the ledger's checkpoint and the event log's, which know of requests that a lost book doesn't.
        """
        if late is None:
            return None
        names = frozenset(one.beside for one in filling(self.remaps))
        return replace(late, besides=names, begin=partial(self._begin, late, requests, known))

    def _begin(
        self,
        late: LateTargets,
        requests: RequestStore,
        known: Sequence[Checkpoint],
        target: str,
        tables: Sequence[TableId],
    ) -> None:
        """Has all rows of source tables dumped for a target that lacks them; a table beside is emptied first.

        What it had asked for before is given up.
        """
        if self.port is not None and any(one.beside == target for one in filling(self.remaps)):
            self.port.empty(self.epoch, target)
        else:
            late.keep("ask for rows", f"{target}: {', '.join(map(str, tables))}")
        old = {name for checkpoint in known for name in awaited_requests(checkpoint, target)}
        last = max((number_of(name) for checkpoint in known for name in checkpoint.dumps_named()), default=0)

        def asked(book: RequestBook) -> RequestBook:
            return cancelled(book, old).behind(last).start(tuple(tables), WHOLE, token=new_token())

        requests.update(asked)

    def carried(self, carry: Callable[[], Carried]) -> Carried:
        """Returns what it gives; where it refuses another mapping, says which function was taken."""
        try:
            return carry()
        except MappingError as error:
            refused = error.where.replace("target tables ", "").replace("target table ", "").split(", ")
            if switched := sorted(in_force(self.remaps) & {*refused}):
                error.cause += (
                    f". Of {', '.join(switched)} the function that is declared as next was taken, which came into"
                    " force by a remap: another one can be next after one start without any"
                )
            raise

    def due(self, checkpoint: Checkpoint) -> list[Remap]:
        """Returns the next mappings whose rows are all there."""
        return [one for one in filling(self.remaps) if whole(checkpoint, one)]

    def switch(self, remap: Remap, plans: Mapping[str, MappingPlan]) -> None:
        """Brings its rows into the target and has the ledger say so (see ``Besides.switch``)."""
        if self.port is not None:
            written = [column.name for column in plans[remap.beside].columns]
            self.port.switch(self.epoch, remap, written, lambda now: switched(now, remap))


def tidied(port: Besides | None, mapping: TargetMappings, ledger: Ledger, epoch: int) -> Remapping:
    """Brings what the ledger says of next mappings as far as it goes without rows; called under the lead.

    Raises ``MappingError`` where one that is being filled isn't declared, or can't follow.
    """
    remaps = () if ledger.checkpoint is None else ledger.checkpoint.remaps
    if port is None or not remaps:
        return Remapping(port, epoch)
    kept = []
    for one in remaps:
        left = _tidied(port, mapping, one, epoch)
        kept += [left] if left is not None else []
    return Remapping(port, epoch, tuple(kept))


def _tidied(port: Besides, mapping: TargetMappings, remap: Remap, epoch: int) -> Remap | None:
    target, phase = remap.target, remap.phase
    if phase is Phase.FILLING:
        _refuse(mapping, target)
        port.make(target, remap.beside)
        return remap
    if phase in (Phase.SWITCHED, Phase.ABORTED):
        port.drop(remap.beside)
    declared = target in mapping.nexts
    after = Phase.IN_FORCE if phase is not Phase.ABORTED and declared else None
    if after is not phase:
        port.note(lambda now: moved(now, target, after), epoch=epoch)
    return None if after is None else Remap(target, "", after)


def _refuse(mapping: TargetMappings, target: str) -> None:
    if target in mapping.nexts:
        nexts.refuse_misfit(mapping, target)
    else:
        raise MappingError(
            f"the next function of target table {target!r} isn't declared any more",
            where=f"target table {target}",
            cause="`migrator remap` asked for it, and a table beside is filled by it",
            remedy=f"declare it again, or give it up: migrator remap {target} --abort",
        )


def cancelled(book: RequestBook, names: Collection[str]) -> RequestBook:
    """Returns the book with the open requests of these names cancelled."""
    for request in book.requests:
        if request.is_open() and request.name() in names:
            book = book.cancel(request.id)
    return book


class Switch:
    """The switch to next mappings during one attempt, which ends with it: what is mapped ahead is of before.

    Args:
        remapping: the next mappings.
        plans: of all mappings, those that fill tables beside among them.
        target: the leader's, whose session is closed first (see ``Besides.switch``).
        lead: the lease.
        progress: gets a note, and a warning about what keeps rows from being switched.
        step: called at the point ``remap.switched``.
        stop: ends the attempt.

    Attributes:
        done: whether another attempt has to begin.
    """

    def __init__(
        self,
        remapping: Remapping,
        plans: Mapping[str, MappingPlan],
        target: Target,
        lead: Lead,
        progress: Progress,
        step: Step,
        stop: Callable[[], None],
    ):
        self._remapping, self._plans, self._target, self._lead = remapping, plans, target, lead
        self._progress, self._step, self._stop = progress, step, stop
        self._refused: set[str] = set()
        self.done = False
        progress.warn(_ABOUT)

    def begin(self, applied: Checkpoint | None, carried: Carried) -> bool:
        """Looks before the first batch: an earlier run may have been killed just before. Tells whether it is done.

        Args:
            applied: the ledger's.
            carried: which rows the target has.
        """
        if applied is not None:
            self.look(replace(applied, fed=carried.fed, awaited=carried.awaited))
        return self.done

    def look(self, checkpoint: Checkpoint) -> None:
        """Switches to a next mapping whose rows are all there.

        What the target refuses for good is a warning, and the run goes on by the former function: its rows are as
        right as before, and the next start tries again. Raises ``FencedError``, ``ConnectionFailed``, ``TargetError``
        where another try may succeed.
        """
        due = [one for one in self._remapping.due(checkpoint) if one.target not in self._refused]
        if due and not self.done:
            self._switch(due[0])

    def _switch(self, remap: Remap) -> None:
        self._progress.set(note=f"{remap.target}: its rows become those of its next mapping")
        self._lead.await_sure()
        self._target.close()
        try:
            self._remapping.switch(remap, self._plans)
        except TargetError as error:
            if error.retryable:
                raise
            self._refused.add(remap.target)
            self._progress.set(note="")
            self._progress.warn(
                _ABOUT, f"{remap.target} stays as it is, its next mapping can't be switched to: {error}"
            )
            return
        self._step("remap.switched")
        self.done = True
        self._stop()


class SwitchingTarget(SureTarget):
    """A ``SureTarget`` that looks after each batch whether a next mapping has all of its rows.

    Args:
        target: what writes.
        lead: the lease.
        look: called with the ledger's checkpoint once a batch is committed.
    """

    def __init__(self, target: Target, lead: Lead, look: Callable[[Checkpoint], None]):
        super().__init__(target, lead)
        self._look = look

    def apply(self, batch: TargetBatch) -> None:
        """See the port; then looks."""
        super().apply(batch)
        self._look(batch.checkpoint)
