"""The columns of a Relation message that have another name by now.

A Relation message names columns as they were called at its place in the log, without numbers. It lists them by their
numbers (``attnum``), which rise with each column that is added and are never given again. So a column without its
name in the catalog is told by those around it: between two columns that still have their names, the log has as many
others as the catalog has, if none of those that were dropped there is among them, or as many as there ever were.

Nothing is guessed. Where some of the dropped columns may be among those at hand, names stay as the log has them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

_BEYOND = 1 << 31


def present_names(
    seen: Sequence[str],
    now: Sequence[tuple[str, int]],
    dropped: Collection[int],
    noted: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, str]:
    """Returns the names that columns of a Relation message have by now, by their names there: those that differ.

    Args:
        seen: the names in the log, in its order.
        now: names and numbers of the table's columns that the log can have, as the catalog has them.
        dropped: the numbers of all others that the table ever had.
        noted: numbers of columns as they were noted at some earlier time: a name that has another number now tells
            no column.
    """
    numbers = dict(now)
    telling = {name for name, number in now if noted.get(name, number) == number}
    certain = [numbers[name] for name in seen if name in telling]
    if certain != sorted(certain):
        return {}  # names were exchanged: one of them isn't the column's that has it now
    there = {number: name for name, number in now if number not in certain} | dict.fromkeys(dropped, "")
    found: dict[str, str] = {}
    waiting: list[str] = []
    behind = 0
    for name in [*seen, ""]:
        if name and name not in telling:
            waiting.append(name)
            continue
        number = numbers.get(name, _BEYOND)
        found |= _between(
            waiting, [there[at] for at in sorted(there) if behind < at < number], number == _BEYOND
        )
        waiting, behind = [], number
    return {old: new for old, new in found.items() if new not in ("", old)}


def _between(waiting: Sequence[str], there: Sequence[str], last: bool) -> dict[str, str]:
    """The names that the columns between two others have now, those of dropped ones empty.

    ``there``: of all that ever were there. ``last``: whether no other follows, so that the later ones among them may
    not have been added yet.
    """
    left = [name for name in there if name]
    if len(waiting) == len(there) or (last and len(left) == len(there) and len(waiting) < len(there)):
        return dict(zip(waiting, there, strict=False))
    return dict(zip(waiting, left, strict=True)) if len(waiting) == len(left) and not last else {}
