"""The reverse of a mapping, old table by old table: which new tables give its rows and columns back. Pure.

One new table is the base, whose rows are the old table's; others are joined to it by what both are made of alike.
Where no new table has all rows, several that surely have different ones are put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrator.model.target import TargetTable
from transforms.reverse.candidates import Candidate, Candidates, Found, Lookups, Part, Side
from transforms.reverse.conditions import apart, complete
from transforms.reverse.pieces import Piece
from transforms.reverse.texts import literal

__all__ = ["Part", "Reverse", "Side", "reverses"]


@dataclass(frozen=True, slots=True)
class Reverse:
    """The reverse of one old table.

    Attributes:
        old: the table.
        bases: tables that give its rows; several are united; none where nothing follows.
        joined: tables that are joined to the only base.
        open: columns that nothing gives back, each with the reasons.
        notes: what is to be known of the rows.
    """

    old: TargetTable
    bases: tuple[Part, ...] = ()
    joined: tuple[Part, ...] = ()
    open: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def reverses(old: Mapping[str, Side], new: Mapping[str, Side], found: Sequence[Piece]) -> list[Reverse]:
    """The reverse of each old table.

    Args:
        old: the tables that the mapping reads.
        new: the tables that it fills, as far as they can be read.
        found: its pieces, of all targets.
    """
    tables = [_Table(side, new, found) for side in old.values()]
    lookups = dict(one for table in tables for one in table.lookups())
    return [table.reverse(lookups) for table in tables]


class _Table:
    """One old table, with the pieces that are made of it."""

    def __init__(self, side: Side, new: Mapping[str, Side], found: Sequence[Piece]):
        self._side = side
        self._key = side.written.key
        self._writable = [one.name for one in side.written.columns if not one.generated]
        self._candidates = Candidates(side, new, found)
        self._mine = [piece for piece in found if piece.root == side.written.id.name]
        self._found: list[Candidate] = []
        self._unusable: list[str] = []
        for piece in self._mine:
            one = self._candidates.candidate(piece)
            if isinstance(one, str):
                self._unusable.append(one)
            else:
                self._found.append(one)

    def lookups(self) -> list[tuple[object, Found]]:
        """Old columns that other tables may look up here."""
        return [one for it in self._found if (one := self._candidates.lookup(it)) is not None]

    def reverse(self, lookups: Lookups) -> Reverse:
        """The reverse of the table."""
        candidates = [self._candidates.with_lookups(one, lookups) for one in self._found]
        bases, notes = self._bases(candidates)
        joined = self._joined(bases[0], candidates) if len(bases) == 1 else ()
        restored = {name for one in (*bases, *joined) for name in one.restored}
        if len(bases) > 1:
            restored = set.intersection(*(set(one.restored) for one in bases))
        left = {name: self._reasons(name, candidates) for name in self._writable if name not in restored}
        return Reverse(self._side.written, bases, joined, left, (*notes, *dict.fromkeys(self._unusable)))

    # -- the rows -------------------------------------------------------------------------------------------------

    def _bases(self, candidates: Sequence[Candidate]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
        total = [one for one in candidates if one.names().issuperset(self._key) and not one.part.rows]
        if total:
            return (max(total, key=_worth).part,), ()
        keyed = [one for one in candidates if set(one.part.restored).issuperset(self._key)]
        if not keyed:
            return (), ()
        best = max(keyed, key=_worth)
        several = [best]
        for one in keyed:
            if one is not best and all(apart(one.piece.conditions, it.piece.conditions) for it in several):
                several.append(one)
        notes = [f"{one.part.table} has a row only where {one.part.rows}" for one in several]
        return tuple(one.part for one in several), tuple(notes)

    def _joined(self, base: Part, candidates: Sequence[Candidate]) -> tuple[Part, ...]:
        """Other new tables, for columns that the base doesn't give, or gives with loss."""
        [start] = [one for one in candidates if one.part is base]
        have = {name: len(one.notes) for name, one in base.restored.items()}
        found: list[Part] = list(start.lookups)
        have |= {name: 0 for one in found for name in one.restored}
        for one in sorted(candidates, key=lambda it: (bool(it.part.rows), -len(it.part.restored))):
            links = _links(one.piece, start.piece) if one is not start else None
            if links is None or one.part.table == base.table:
                continue
            note = self._partial(one, candidates)
            more = {
                name: replace(value, notes=(*value.notes, *note))
                for name, value in one.own.items()
                if name not in self._key and (name not in have or len(value.notes) < have[name])
            }
            if more:
                found.append(Part(one.part.table, one.piece.key, one.part.where, more, links, one.part.rows))
                if not one.part.rows:
                    have |= {name: len(value.notes) for name, value in more.items()}
        return tuple(found)

    def _partial(self, one: Candidate, candidates: Sequence[Candidate]) -> tuple[str, ...]:
        """A note on a table that has some rows only, unless another has all others."""
        if not one.part.rows or any(complete(one.piece, it.piece) for it in candidates):
            return ()
        return (f"NULL comes back unless {one.part.rows}",)

    def _reasons(self, name: str, candidates: Sequence[Candidate]) -> tuple[str, ...]:
        found = [one.lost[name] for one in candidates if name in one.lost]
        if not found and name in {old for one in candidates for old in one.part.restored}:
            found = ["only a part of the rows have it, or their new table can't be joined"]
        if not found and not self._mine:
            found = ["no new table has a row for each of its rows"]
        return tuple(dict.fromkeys(found or ["no new column comes from it"]))


def _worth(one: Candidate) -> tuple[int, int]:
    return len(one.names()), -sum(len(value.notes) for value in one.part.restored.values())


def _links(piece: Piece, base: Piece) -> tuple[tuple[str, str], ...] | None:
    """The piece's key columns, each with a column of the base that is made alike; None unless all have one."""
    found = []
    for name in piece.key:
        expression = piece.columns[name]
        same = [other for other, theirs in base.columns.items() if theirs == expression]
        if literal(expression) is not None or not same:
            return None
        found.append((name, name if name in same else same[0]))
    return tuple(found)
