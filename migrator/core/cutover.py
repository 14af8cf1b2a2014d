"""The rules of a cut-over: which step follows, what an operator's word means, what is undone. Pure: no clock."""

from __future__ import annotations

from dataclasses import replace

from migrator.errors import CutoverError
from migrator.model.cutover.record import (
    SWITCH,
    UNDONE,
    CutoverPlan,
    Phase,
    Record,
    Side,
    Structure,
    Took,
    Wanted,
)

_SIDES = {Wanted.START: Side.OLD, Wanted.BACK: Side.NEW}
"""The side that has to be open for an operator's word to make sense; finish makes sense with either."""


def asked(record: Record, wanted: Wanted) -> Record:
    """Returns the record with an operator's word. Raises ``CutoverError`` where the machine can't take it now."""
    if record.phase in (Phase.FINISHING, Phase.FINISHED):
        raise _not_now(record, wanted, "it was finished: a new plan has to be accepted first")
    if wanted is Wanted.ABORT:
        if record.phase not in UNDONE and record.wanted is Wanted.NOTHING:
            busy = {
                Phase.OPENING: "it opens the other side already",
                Phase.UNDOING: "it is being undone already",
            }
            raise _not_now(record, wanted, busy.get(record.phase, "no switch is under way"))
        return record.changed(wanted=wanted)
    if record.wanted is not Wanted.NOTHING or record.under_way:
        raise _not_now(record, wanted, f"{record.wanted or record.phase} is under way")
    if record.open_side is not _SIDES.get(wanted, record.open_side):
        raise _not_now(record, wanted, f"the {record.open_side} side is open")
    if wanted is Wanted.FINISH and {record.reads, record.reads_wanted or record.reads} != {record.open_side}:
        why = f"reads go to the other side: `migrator cutover reads --to {record.open_side}` first"
        raise _not_now(record, wanted, why)
    return record.changed(wanted=wanted, reason="")


def asked_reads(record: Record, side: Side, gate: str) -> Record:
    """Returns the record with an operator's word about reads.

    Reads go back to the old side, and to whichever side is open, whatever is under way.

    Args:
        record: of the cut-over.
        side: where reads are to go.
        gate: why the gate of reads isn't met; empty where it is.

    Raises ``CutoverError`` where they can't go there.
    """
    if record.phase in (Phase.FINISHING, Phase.FINISHED):
        raise CutoverError(
            "reads can't be pointed any more",
            cause="the cut-over was finished: a new plan has to be accepted first",
            remedy="look at `migrator cutover status`",
        )
    if not record.plan.reads_hook:
        raise CutoverError(
            "reads can't be pointed alone",
            cause="the plan that was accepted has no hook for them: they go with the writes",
            remedy="set reads_hook in [cutover], then `migrator cutover plan --accept`",
        )
    if gate and side is Side.NEW and record.open_side is Side.OLD:
        raise CutoverError(
            "reads can't go to the new side yet", cause=gate, remedy="look at `migrator cutover reads`"
        )
    return record.changed(reads_wanted=side, reads_turn=record.reads_turn + 1, reads_said="")


def reads_are_due(record: Record) -> bool:
    """Tells whether an operator's word about reads is acted on now.

    Reads go to the old side at any time but while the hook is called anyway. On their way to the new side they wait
    for the end of a switch: nobody can write meanwhile, and what they go by has to be asked of both sides.
    """
    if record.reads_wanted is Side.OLD:
        return record.phase is not Phase.SWITCHING
    return not record.under_way


def reads_pointed(record: Record, why_not: str) -> Record:
    """Returns the record behind a call of the hook for reads; ``why_not``: they stay where they were."""
    if why_not:
        return record.changed(reads_wanted=None, reads_said=why_not)
    return record.changed(reads=record.reads_wanted, reads_wanted=None, follows=False)


def reads_after_undo(record: Record) -> Side:
    """Returns where reads belong once the switch under way is undone."""
    return record.open_side if record.follows else record.reads


def begun(record: Record, now_s: float, structure: Structure = ()) -> Record:
    """Returns the record of a switch that begins now, both sides' tables being like that."""
    return record.changed(
        turn=record.turn + 1,
        phase=SWITCH[0],
        wanted=Wanted.NOTHING,
        since_s=now_s,
        hooked=False,
        follows=False,
        reason="",
        took=(),
        structure=structure,
    )


def other_hooks(record: Record, hook: str, reads_hook: str) -> str:
    """Returns why a leader that has these hooks can't begin a switch to the new side; empty where it can.

    A record holds no words that a leader would run: whoever may write there would run commands on its machine. So a
    leader calls its own hooks, which have to be those that were accepted. On the way back it calls those it has.
    """
    plan = record.plan
    names = [
        name
        for name, mine, accepted_one in (
            ("hook", hook, plan.hook),
            ("reads_hook", reads_hook, plan.reads_hook),
        )
        if mine != accepted_one
    ]
    if not names or record.wanted is not Wanted.START:
        return ""
    return (
        f"{' and '.join(names)} of the accepted plan isn't what `migrator run` has read in [cutover]: start it again,"
        " and if the file is other than the plan, `migrator cutover plan --accept` first"
    )


def changed_tables(before: Structure, now: Structure) -> list[str]:
    """Returns the tables that are others now, or gone, or new; none where nothing was noted before."""
    if not before:
        return []
    known, found = dict(before), dict(now)
    return sorted(name for name in known.keys() | found.keys() if known.get(name) != found.get(name))


def stepped(record: Record, seconds: float, equal: int | None = None) -> Record:
    """Returns the record behind the step under way; behind the last one the sides have changed.

    ``equal``: the segment up to which the step found everything equal that the open side has changed.
    """
    took = (*record.took, Took(record.phase, seconds))
    if equal is not None:
        old = record.open_side is Side.OLD
        record = replace(
            record,
            equal_old=equal if old else record.equal_old,
            equal_new=record.equal_new if old else equal,
        )
    if record.phase is SWITCH[-1]:
        return record.changed(
            phase=Phase.IDLE,
            open_side=record.opens,
            follows=False,
            reason="",
            took=took,
            wanted=Wanted.NOTHING,
        )
    following = SWITCH[SWITCH.index(record.phase) + 1]
    points = following is Phase.SWITCHING
    return record.changed(
        phase=following,
        hooked=record.hooked or points,
        follows=record.reads is not record.opens if points else record.follows,
        reads=record.opens if record.phase is Phase.SWITCHING else record.reads,
        reason="",
        took=took,
    )


def due_to_undo(record: Record, now_s: float) -> str:
    """Returns why the switch under way must be undone now; empty where it needn't, or can't be any more."""
    if record.phase not in UNDONE:
        return ""
    if record.wanted is Wanted.ABORT:
        return "an operator aborted it"
    if now_s - record.since_s > record.plan.pause_s:
        waited = f": {record.reason}" if record.reason else ""
        return f"it took more than {record.plan.pause_s:g} s, in step {record.phase}{waited}"
    return ""


def undoing(record: Record, reason: str) -> Record:
    """Returns the record of a switch that is undone from now on."""
    return record.changed(phase=Phase.UNDOING, wanted=Wanted.NOTHING, reason=reason)


def undone(record: Record, hook_failed: str = "") -> Record:
    """Returns the record of a switch that was undone: the side that was open is open again.

    ``hook_failed``: how the hook failed that was to point the application back; empty: it didn't.
    """
    more = f" (the hook failed as well: {hook_failed})" if hook_failed else ""
    return record.changed(
        phase=Phase.IDLE, reason=f"{record.reason}{more}", reads=reads_after_undo(record), follows=False
    )


def accepted(record: Record | None, plan: CutoverPlan, token: str = "") -> Record:
    """Returns the record of a plan that is accepted now; ``token`` is for one where there was none. Raises as
    ``may_accept`` does.

    Behind a plan that was given up its counts go on: a switch's key names a call of the hook for ever, and whoever
    writes late writes an older version.
    """
    may_accept(record, plan)
    if record is None:
        return Record(plan, token=token)
    if record.phase is Phase.FINISHED:
        return Record(
            plan,
            number=record.number + 1,
            turn=record.turn,
            reads_turn=record.reads_turn,
            token=record.token,
        )
    return record.changed(plan=plan)


def may_accept(record: Record | None, plan: CutoverPlan) -> None:
    """Raises ``CutoverError`` where a plan can't take the place of what is there."""
    if record is None or (record.phase is Phase.FINISHED and record.open_side is Side.OLD):
        return
    if record.phase is Phase.FINISHED:
        raise CutoverError(
            "the old side was given up for good",
            cause="a cut-over was finished while the new side was open: nothing written there since was carried back",
            remedy="look at `migrator cutover status`; to go back takes a migration of its own, from the new side",
        )
    busy = record.under_way or record.wanted is not Wanted.NOTHING
    if busy or Side.NEW in (record.open_side, record.reads):
        raise CutoverError(
            "the plan can't be changed now",
            cause=f"the {record.open_side} side is open, reads go to the {record.reads} one,"
            f" {record.wanted or record.phase} is under way",
            remedy="look at `migrator cutover status`: a plan is changed while the old side is open, and read",
        )
    if (plan.old, plan.new) != (record.plan.old, record.plan.new):
        raise CutoverError(
            "the fences of an accepted plan can't be changed",
            cause="the new side's fence stands as it was accepted, and has to be opened first",
            remedy="give that plan up with `migrator cutover finish`, then accept the new one",
        )


def opened(record: Record, side: Side) -> Record:
    """Returns the record once an operator has opened a side by hand: whatever was under way is given up.

    Raises ``CutoverError`` where the cut-over was finished.
    """
    if record.phase in (Phase.FINISHING, Phase.FINISHED):
        raise CutoverError(
            "no side has to be opened by hand",
            cause="the cut-over was finished",
            remedy="look at `migrator cutover status`",
        )
    return record.changed(
        phase=Phase.IDLE,
        open_side=side,
        wanted=Wanted.NOTHING,
        hooked=False,
        reason=f"an operator opened the {side} side by hand",
    )


def refused(record: Record, reason: str) -> Record:
    """Returns the record of a switch that can't begin."""
    return record.changed(wanted=Wanted.NOTHING, reason=reason)


def _not_now(record: Record, wanted: Wanted, why: str) -> CutoverError:
    return CutoverError(
        f"a cut-over can't take {wanted.value!r} now",
        cause=why,
        remedy="look at `migrator cutover status`",
    )
