"""Generators of numbers in a database, and how far they have to be for the hand-over. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberSequence:
    """A sequence, an identity column's sequence, or an AUTO_INCREMENT counter.

    Attributes:
        name: quoted, as its server writes it; of an AUTO_INCREMENT the table's name.
        kind: ``sequence`` or ``AUTO_INCREMENT``.
        columns: (table, column) of every column that takes values from it, tables without their schema.
        following: the value that it hands out next; may lie beyond its bounds when it is exhausted.
        step: from one value to the next; below 0 for one that counts down; never 0.
        least, greatest: bounds of it and of the columns' types.
        cycles: whether it begins again after its end.
        held: the value in those columns that is farthest along its way; None without any.
        problem, remedy: why it can't be judged; empty if it can.
    """

    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]
    following: int
    step: int
    least: int
    greatest: int
    cycles: bool
    held: int | None
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The farthest value of a source's sequence: the last one that it gave or keeps cached for somebody."""

    last: int
    step: int


@dataclass(frozen=True, slots=True)
class Advance:
    """The step to take with a sequence: none where ``following`` is what it was.

    Attributes:
        sequence: as it stands.
        following: the value that it shall hand out next.
        source: how far the source's own is; None where that isn't known or doesn't count.
        problem, remedy: why it can't be set; empty if it can.
        note: what an operator should know though it can be set.
    """

    sequence: NumberSequence
    following: int
    source: int | None = None
    problem: str = ""
    remedy: str = ""
    note: str = ""

    def moves(self) -> bool:
        """Tells whether the sequence is to be set."""
        return not self.problem and self.following != self.sequence.following


def advance(found: NumberSequence, source: tuple[HandedOut, ...] = (), margin: int = 0) -> Advance:
    """Computes the next value of a sequence so that it repeats none that exists in the target or existed in the
    source.

    It is never moved backwards, and stays on the values that it would come to by itself. One with a step of
    fifty is moved so far that the fifty values before its next one are free too: clients count within a step.

    Args:
        found: the sequence, with the value held being read before its own.
        source: the source's sequences of columns that come here unchanged; those of another direction don't count.
        margin: how many further values to leave out.
    """
    sign = 1 if found.step > 0 else -1
    handed_out = [one.last * sign for one in source if (one.step > 0) == (found.step > 0)]
    farthest = max(handed_out) * sign if handed_out else None
    reached = [*handed_out, *([] if found.held is None else [found.held * sign])]
    if found.problem:
        return Advance(found, found.following, farthest, found.problem, found.remedy)
    missing = max(reached) + margin - (found.following - found.step) * sign if reached else 0
    steps = max(0, -(-missing // abs(found.step)))
    following = found.following + steps * found.step
    if following > found.greatest or following < found.least:
        bound = found.greatest if sign > 0 else found.least
        again = ", and it would begin again among them" if found.cycles else ""
        return Advance(
            found,
            found.following,
            farthest,
            f"no value is left: the next one would be {following}, the last possible is {bound}{again}",
            "give column and sequence a wider type in an Alembic revision, or ask for a smaller --margin",
        )
    note = "CYCLE: after its end it begins again among values that exist" if found.cycles else ""
    return Advance(found, following, farthest, note=note)
