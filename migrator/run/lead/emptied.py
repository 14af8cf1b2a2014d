"""Targets that lost all of their rows while nobody led: somebody emptied them.

A ledger says of each target whether it had rows after the last batch that wrote into it: the target looks, in that
batch's transaction (``targets/shared/identities.py``). What had some, and is empty at the next start, was emptied by
somebody else (TRUNCATE, DELETE), on every engine. No identity tells that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from migrator.model.progress import Checkpoint, Mapped


def emptied(
    before: Iterable[Mapped], targets: Collection[str], holds_rows: Callable[[str], bool]
) -> set[str]:
    """Returns the targets that are empty, though the last batch of each left rows in it.

    Args:
        before: what the ledger says of each target.
        targets: those of the mapping as it is now.
        holds_rows: tells whether a target has any row.
    """
    asked = sorted(one.target for one in before if one.holds and one.target in targets)
    return {name for name in asked if not holds_rows(name)}


def forgotten(applied: Checkpoint, targets: Collection[str]) -> set[str]:
    """Returns the targets that got no rows yet, as far as the ledger knows: new ones, and those that a reset forgot.

    A reset forgets a table before its rows go, so that nobody takes it for one that somebody emptied.
    """
    return {*targets} - {name for name, _ in applied.fed or ()} - {name for name, *_ in applied.awaited}
