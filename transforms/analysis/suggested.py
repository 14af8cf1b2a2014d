"""Old columns that may fill a new one of another name, by the words of both names. Pure.

A suggestion fills nothing: it stands in the text of a gap, for somebody who knows the data.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from migrator.model.table import Column, TableSchema
from migrator.model.target import TargetColumn, TargetTable

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHORT = {
    "addr": "address", "amt": "amount", "desc": "description", "dt": "date", "fk": "id", "ident": "id",
    "identifier": "id", "nr": "number", "no": "number", "num": "number", "pk": "id", "qty": "quantity",
    "tel": "phone", "telephone": "phone", "ts": "time", "timestamp": "time", "usr": "user",
}  # fmt: skip
"""Short forms that columns' names have, with the word that each stands for."""
_ALIKE = 0.75
"""Share of two names that must be the same for one to be a misspelt other."""
_LONG = 3
"""Letters of the shortest word that tells anything by itself."""
Fits = Callable[[TargetColumn, Column], bool]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An old column; ``sure``: its name is the new one but for case and separators."""

    column: Column
    sure: bool

    def text(self) -> str:
        """Writes name and type, with a mark where somebody has to look."""
        return f"{self.column.name} {self.column.source_type}{'' if self.sure else '?'}"


def suggestions(
    target: TargetTable,
    wanted: Sequence[TargetColumn],
    source: TableSchema,
    free: Collection[str],
    fits: Fits,
) -> dict[str, Suggestion]:
    """Old columns for new ones, each at most once, the likeliest first.

    Args:
        target: the new table.
        wanted: those of its columns that nothing fills.
        source: the old table.
        free: names of its columns that may be taken.
        fits: whether an old column's type becomes that of a new one; asked where names are only alike.
    """
    ranked = []
    for place, new in enumerate(wanted):
        for old in (one for one in source.columns if one.name in free):
            rank, alike = _likeness(new.name, target.id.name, old.name, source.id.name)
            if rank <= _BY_SHORT_FORM or (rank < _NONE and fits(new, old)):
                ranked.append((rank, -alike, place, new, old))
    found: dict[str, Suggestion] = {}
    taken = set[str]()
    for rank, _, _, new, old in sorted(ranked, key=lambda one: one[:3]):
        if new.name not in found and old.name not in taken:
            found[new.name] = Suggestion(old, rank == _BY_SPELLING)
            taken.add(old.name)
    return found


def likeliest(target: TargetTable, tables: Mapping[str, TableSchema], unread: Collection[str]) -> str:
    """Name of the old table that resembles a new one most; of several, one that nothing reads.

    ``tables``: not empty. What counts is the share of columns of the same words, and the table's own name.
    """
    wanted = {_folded(column.name, target.id.name) for column in target.columns}

    def likeness(name: str) -> tuple[float, bool]:
        there = {_folded(column, name) for column in tables[name].names()}
        rank, alike = _likeness(target.id.name, "", name, "")
        return len(wanted & there) / max(1, len(wanted)) + (
            alike if rank < _BY_LAST_WORD else 0.0
        ), name in unread

    return max(tables, key=likeness)


def _folded(column: str, table: str) -> str:
    return "".join(_long_form(_without(_words(column), _words(table)))) or column


_BY_SPELLING, _BY_TABLE, _BY_SHORT_FORM, _BY_PART, _BY_LETTERS, _BY_LAST_WORD, _NONE = range(7)


def _likeness(new: str, new_table: str, old: str, old_table: str) -> tuple[int, float]:
    """Ranks how one name may stand for another, the surest first, and the share of both that is the same."""
    ours, theirs = _words(new), _words(old)
    alike = difflib.SequenceMatcher(None, "".join(ours), "".join(theirs)).ratio()
    if not ours or not theirs:
        return (_BY_SPELLING if new.casefold() == old.casefold() else _NONE), alike
    if "".join(ours) == "".join(theirs):
        return _BY_SPELLING, alike
    own, their_own = _without(ours, _words(new_table)), _without(theirs, _words(old_table))
    if "".join(own) == "".join(their_own):
        return _BY_TABLE, alike
    if _long_form(own) == _long_form(their_own) or _long_form(ours) == _long_form(theirs):
        return _BY_SHORT_FORM, alike
    shared = set(ours) & set(theirs)
    if any(len(word) >= _LONG for word in shared) and (shared == set(ours) or shared == set(theirs)):
        return _BY_PART, alike
    if alike >= _ALIKE:
        return _BY_LETTERS, alike
    same_end = _long_form(ours)[-1] == _long_form(theirs)[-1] == "id"
    return (_BY_LAST_WORD if same_end else _NONE), alike


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(_HUMP.sub("_", name))]


def _without(words: list[str], table: list[str]) -> list[str]:
    """The words of a column without those of its table, in front; the plural is the same word."""
    front = ["".join(words[: len(table)]).removesuffix("s"), "".join(table).removesuffix("s")]
    rest = words[len(table) :]
    return rest if table and rest and front[0] == front[1] else words


def _long_form(words: list[str]) -> list[str]:
    return [_SHORT.get(word, word) for word in words]
