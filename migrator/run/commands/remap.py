"""Next mappings of row-wise targets as an operator asks for them, or gives them up.

What is asked for is in the ledger, where each start sees it, on whatever machine. The order, for whoever is killed in
the middle:

====================  ==============================================================================================
killed after          then
====================  ==============================================================================================
the ledger            the next start makes the table beside
the table beside      done: the next start asks for the rows
giving up             no start switches any more; the next one drops the table beside
====================  ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from migrator.errors import FencedError, MappingError, RequestError
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint, Phase
from migrator.model.remaps.remap import awaited_requests, beside_name, moved, remap_of
from migrator.ports.besides import Besides
from migrator.ports.leadership import Leadership
from migrator.ports.requests import RequestStore
from migrator.run.lead.remapping import cancelled
from migrator.run.migration import plans
from migrator.run.parts import Parts
from migrator.run.steps import Step
from transforms import nexts

_PAGE = "docs/how-to/mapping/change-the-mapping.md"


def check_next(parts: Parts, target: str) -> None:
    """Raises ``MappingError`` where no next function of the target is declared, or it can't come into force."""
    mapping = parts.mapping
    if target not in mapping.nexts:
        raise MappingError(
            f"no next function of target table {target!r} is declared",
            where=f"target table {target}",
            cause="its rows stay those of the function that makes it until they are those of a next one",
            remedy=f'keep that function as it was, and add the other one with @mapping.next("{target}", ...)'
            f" ({_PAGE})",
        )
    nexts.refuse_misfit(mapping, target)
    plans(replace(parts, mapping=nexts.alone(mapping, [target])))


def ask(besides: Besides, ledger: Ledger | None, target: str, step: Step) -> str:
    """Has the next start fill a table beside by the next function; returns that table's name.

    Asked for again, it does what is left of it.

    Raises ``RequestError`` where nothing was applied yet, or another next function came into force and is still
    declared as next; ``TargetError``.
    """
    checkpoint = None if ledger is None else ledger.checkpoint
    if checkpoint is None or checkpoint.fed is None or checkpoint.mapped is None:
        raise RequestError(
            f"{target} has no rows of a mapping that is known",
            where=f"target table {target}",
            cause="nothing was applied yet" if checkpoint is None else "an earlier version wrote the ledger",
            remedy="edit the mapping's function: no row is mapped by it yet"
            if checkpoint is None
            else "start `migrator run`, stop it after its next batch, then repeat `migrator remap`",
        )
    known, beside = remap_of(checkpoint, target), beside_name(target)
    _refuse_phase(target, None if known is None else known.phase)
    if known is None and besides.exists(beside):
        raise RequestError(
            f"the target has a table {beside!r} already",
            where=beside,
            cause="the next mapping's rows need that name, and no remap of ours has made it",
            remedy="drop or rename it, then repeat `migrator remap`",
        )

    def asked(now: Checkpoint) -> Checkpoint:
        there = remap_of(now, target)
        return now if there is not None else moved(now, target, Phase.FILLING)

    besides.note(asked, "remap", f"{target}: its next function fills {beside}")
    step("remap.asked")
    besides.make(target, beside)
    return beside


def _refuse_phase(target: str, phase: Phase | None) -> None:
    if phase in (Phase.SWITCHED, Phase.IN_FORCE):
        raise RequestError(
            f"the next function of {target} is in force already",
            where=f"target table {target}",
            cause="an earlier remap ended; the function declared as next makes the rows",
            remedy="delete the former function, declare the next one with"
            f' @mapping.target("{target}", ...), and start the run once; then another one can be next',
        )
    if phase is Phase.ABORTED:
        raise RequestError(
            f"a remap of {target} was given up, and its table beside is still there",
            where=f"target table {target}",
            cause="the run that filled it goes on until it starts again",
            remedy="stop the run and start it again, then repeat `migrator remap`",
        )


def abort(
    besides: Besides,
    ledger: Callable[[], Ledger | None],
    requests: RequestStore,
    leadership: Leadership,
    target: str,
) -> bool:
    """Gives a next mapping up before it comes into force; tells whether the table beside is dropped. While somebody
    leads it isn't: the leader's next start sees to it.

    Raises ``RequestError`` where there is nothing to give up any more.
    """
    found = ledger()
    checkpoint = None if found is None else found.checkpoint
    known = remap_of(checkpoint, target)
    if (
        found is None
        or checkpoint is None
        or known is None
        or known.phase not in (Phase.FILLING, Phase.ABORTED)
    ):
        raise _nothing_left(target, None if known is None else known.phase)

    def given_up(now: Checkpoint) -> Checkpoint:
        there = remap_of(now, target)
        still = there is not None and there.phase is Phase.FILLING
        return moved(now, target, Phase.ABORTED) if still else now

    besides.note(given_up, "remap aborted", f"{target}: its rows stay those of the function that made them")
    names = awaited_requests(checkpoint, known.beside)
    requests.update(lambda book: cancelled(book, names))
    after = ledger()
    left = remap_of(None if after is None else after.checkpoint, target)
    if left is None or left.phase is not Phase.ABORTED:
        raise _nothing_left(target, None if left is None else left.phase)
    try:
        leadership.acquire(after.epoch if after is not None else 0)
    except FencedError:
        return False
    try:
        besides.drop(known.beside)
        besides.note(lambda now: moved(now, target, None))
    finally:
        leadership.release()
    return True


def _nothing_left(target: str, phase: Phase | None) -> RequestError:
    there = phase is not None
    return RequestError(
        f"no next mapping of {target} is on its way",
        where=f"target table {target}",
        cause="it is in force already" if there else "nobody asked for one",
        remedy=f"to go back, declare the former function as next, then: migrator remap {target}"
        if there
        else f"ask for one: migrator remap {target}",
    )
