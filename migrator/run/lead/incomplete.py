"""The refusal of a start with targets that lack rows, or have some of another mapping: all of them at once."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from migrator.errors import MappingError, MigratorError, TargetError
from migrator.model.table import TableId


class Why(enum.Enum):
    """The reasons why a target can't go on."""

    REPLACED = "made again"
    EMPTIED = "emptied by somebody else"
    CHANGED = "its mapping was changed"
    ADDED = "added, or put back"


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A target that can't go on.

    Attributes:
        target: its name.
        why: the reason.
        tables: source tables whose rows it needs anew.
        differing: how its mapping differs, in words.
        joined: whether its rows can be derived anew from the mirror, while those of before stay.
    """

    target: str
    why: Why
    tables: tuple[TableId, ...]
    differing: str = ""
    joined: bool = False


def refusal(found: Sequence[Incomplete]) -> MigratorError:
    """Returns the error that names all of them, those of the first reason with what to do."""
    why = next(why for why in Why if any(one.why is why for one in found))
    ours = [one for one in found if one.why is why]
    names = [one.target for one in ours]
    where = f"target table{'s' if len(names) > 1 else ''} {', '.join(names)}"
    tables = sorted({table for one in ours for table in one.tables})
    others = ", ".join(f"{one.target} ({one.why.value})" for one in found if one.why is not why)
    more = f". The next start tells the same of {others}" if others else ""
    # rows of one that joins without any are asked for
    anew = _anew(ours, tables if why is not Why.ADDED else (), holding=why is not Why.EMPTIED)
    accepted = " --accept-mapping ".join(names)
    if why is Why.REPLACED:
        return TargetError(
            "a target's table isn't the one that its rows were applied to",
            where=where,
            cause="it was dropped and made again, or another one was given its name: rows applied so far may be gone"
            f"{more}",
            remedy=f"{anew}. Or, if rows applied so far are in it, say so:"
            f" migrator run --accept-mapping {accepted} --reason '...'",
        )
    if why is Why.EMPTIED:
        return TargetError(
            "a target is empty, though the last batch that was applied to it brought rows",
            where=where,
            cause=f"somebody else emptied it: TRUNCATE, or DELETE of all rows{more}",
            remedy=f"{anew}. Or, if it is to be empty, say so:"
            f" migrator run --accept-mapping {accepted} --reason '...'",
        )
    if why is Why.CHANGED:
        differing = "; ".join(f"of {one.target} differ: {one.differing}" for one in ours)
        return MappingError(
            "the mapping of a target was changed, or its schema, after rows of it had been applied",
            where=where,
            cause=f"{differing}. Rows mapped before would stay as they are{more}",
            remedy=f"{anew}. Or put back what was changed{_beside(ours)}; or, if rows mapped so far are what it makes"
            f" of them, say so: migrator run --accept-mapping {accepted} --reason '...'",
        )
    return MappingError(
        "a target was added to the mapping, or put back, after rows of its source tables had been applied",
        where=where,
        cause=f"rows of {', '.join(map(str, tables)) or 'its source tables'} went by without it; it would get changes"
        f" only{more}",
        remedy=f"{anew}. Or take the target out of the mapping",
    )


def _beside(found: Sequence[Incomplete]) -> str:
    """Returns how readers of row-wise targets go on meanwhile."""
    row_wise = [one.target for one in found if not one.joined]
    if not row_wise:
        return ""
    return (
        ", and declare the changed function beside it with @mapping.next: migrator remap"
        f" {' and migrator remap '.join(row_wise)} then brings its rows while readers see those of before"
    )


def _anew(found: Sequence[Incomplete], tables: Sequence[TableId], holding: bool) -> str:
    """Returns how they get all rows by the mapping as it is now.

    Rows are asked for before any is removed: whoever stops between, and puts the mapping back, loses none.
    ``holding``: whether they may hold rows.
    """
    asking = f"ask for the rows: migrator dump start {' '.join(f'--table {table.name}' for table in tables)}"
    if not holding:
        return f"{asking}; then start again"
    asking += "; then "
    emptied = [one.target for one in found if not one.joined]
    which = f"{'tables' if len(emptied) > 1 else 'table'} ({', '.join(emptied)})"
    parts = [
        *([f"{asking if tables else ''}empty the {which}"] if emptied else []),
        *(
            f"have {one.target} derived anew from the mirror, in one transaction: migrator remap {one.target}"
            " --reason '...'"
            for one in found
            if one.joined
        ),
    ]
    return "; ".join([*parts, "then start again"])
