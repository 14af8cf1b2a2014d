"""A reset: everything that a migration made is removed, so that the next run begins as on a new project.

The order is chosen for whoever is killed in the middle. Between any two steps one of two things holds: a run refuses
by name, or nothing that it needs is gone. And a second reset finds what the first one left, and finishes.

====================  ==============================================================================================
killed after          then
====================  ==============================================================================================
the note              the state folder says that a reset began: runs of this machine refuse. Nothing is gone yet: a
                      run of another machine goes on where it was, as it may
the mark              the ledger says so too, under a newer epoch: every process of every machine refuses, and one
                      that slept is refused when it writes. Where the ledger stood is forgotten, so the mark comes
                      before whatever is lost with the log
slot, publication,    as after the mark. The slot comes first, since the source keeps its log for it, and since
watermark row         without it nobody can go on by mistake
staging tables        as after the mark
rows                  as after the mark. Some tables may be empty, others not; rows may point at rows that are gone
mirror, key maps      as after the mark. They come after the rows: what proves that a migration wrote these is
                      removed later than they are
requests and hints    as after the mark: a request that was asked of the old migration must not be met by the next
the ledger's row      for other machines the migration is a new one, and everything that they share is gone. This
                      machine's folder still has its note: here runs refuse until its event log is gone too
each part of the      as before: the note goes last of all that means something
state folder
the note              nothing is left but the lock and the number of the epoch, and those mean nothing
====================  ==============================================================================================

The lead is taken before the first step and kept behind the last: no run can start in between. A lease that is lost
meanwhile (ZooKeeper) lets another machine in, and there the mark refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from migrator.errors import RequestError
from migrator.ports.leadership import Leadership
from migrator.ports.remains import Found, Kind, Left, MarkedRemains, NotedRemains, Remains
from migrator.run.steps import Step

_NO_PROOF = (
    "{said}: nothing shows that a migration of this name wrote them (no ledger, no slot, no event log). If it did,"
    " empty the table yourself, as `migrator check` says"
)


@dataclass(frozen=True, slots=True)
class Places:
    """All places of a migration. ``shared``: what processes of several machines share; None on one machine."""

    source: Remains
    target: MarkedRemains
    shared: Remains | None
    state: NotedRemains

    def all(self) -> list[Remains]:
        """The places in the order in which they are shown."""
        return [self.source, self.target, *([self.shared] if self.shared is not None else []), self.state]


def inventory(places: Places) -> list[Found]:
    """Returns what is at each place, as the servers and the disk have it. Changes nothing.

    Rows of the target's tables count only where something shows that this migration wrote them: else they may be
    the application's own. Raises what a place's ``found`` raises.
    """
    found = [place.found() for place in places.all()]
    if any(left.proves() for one in found for left in one.left):
        return found
    return [_without_rows(one) for one in found]


def _without_rows(found: Found) -> Found:
    rows = [left for left in found.left if left.kind is Kind.ROWS]
    return replace(
        found,
        left=tuple(left for left in found.left if left.kind is not Kind.ROWS),
        kept=(*found.kept, *(_NO_PROOF.format(said=left.said) for left in rows)),
    )


def anything(found: Sequence[Found]) -> bool:
    """Tells whether there is anything to remove."""
    return any(not left.trifle for one in found for left in one.left)


def order(found: Sequence[Found]) -> Iterator[tuple[int, tuple[Left, ...]]]:
    """Yields what is removed in one step, and the number of its place, in the order of the steps.

    The rows of all tables are one step, for they point at each other. The note is none of them: it goes behind all.
    """
    for kind in Kind:
        if kind is Kind.NOTE:
            continue
        for place, one in enumerate(found):
            those = tuple(left for left in one.left if left.kind is kind)
            if kind is Kind.ROWS and those:
                yield place, those
            elif kind is not Kind.ROWS:
                yield from ((place, (left,)) for left in those)


def reset(
    places: Places, leadership: Leadership, shown: Sequence[Found], said: str, step: Step
) -> list[tuple[str, Left]]:
    """Removes everything that was shown; returns place and thing.

    Args:
        places: of the migration.
        leadership: taken for as long as it lasts.
        shown: what was agreed to.
        said: who resets, for whoever finds the marks.
        step: called at the points ``reset.noted``, ``reset.marked`` and ``reset.removed``.

    Raises ``FencedError`` while another process leads, ``RequestError`` where there is more by now than was shown,
    and what the places raise: what was removed by then stays so, and the next reset finishes.
    """
    lease = leadership.acquire(places.target.epoch())
    try:
        found = inventory(places)
        _refuse_more(shown, found)
        places.state.note(said)
        step("reset.noted")
        if any(one.left for place, one in zip(places.all(), found, strict=True) if place is not places.state):
            places.target.mark(lease.epoch, said)
            found = _with_ledger(places, found)
        step(
            "reset.marked"
        )  # where only the state folder is left, the ledger has been let go: its note is enough
        removed = _removed(places, found, step)
        places.state.finish()
        return removed
    finally:
        leadership.release()


def _removed(places: Places, found: Sequence[Found], step: Step) -> list[tuple[str, Left]]:
    every, removed = places.all(), []
    for place, lefts in order(found):
        every[place].remove(lefts)
        removed += [(found[place].place, left) for left in lefts]
        step("reset.removed")
    return removed


def _with_ledger(places: Places, found: Sequence[Found]) -> list[Found]:
    """Adds the ledger's row to what was found, if it isn't there: the mark may have made it."""
    target = places.all().index(places.target)
    if any(left.kind is Kind.LEDGER for left in found[target].left):
        return list(found)
    marked = Left(Kind.LEDGER, "ledger", "the ledger's row", trifle=True)
    return [
        replace(one, left=(*one.left, marked)) if place == target else one for place, one in enumerate(found)
    ]


def _refuse_more(shown: Sequence[Found], found: Sequence[Found]) -> None:
    known = {(one.place, left.kind, left.name) for one in shown for left in one.left}
    more = [
        f"{one.place}: {left.said}"
        for one in found
        for left in one.left
        if (one.place, left.kind, left.name) not in known and not left.trifle
    ]
    if more:
        raise RequestError(
            "there is more to remove by now than was shown",
            where="; ".join(more),
            cause="a process of this migration ran meanwhile",
            remedy="give `migrator reset` again, and read what it shows",
        )
