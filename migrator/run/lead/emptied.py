"""Targets that lost all of their rows while nobody led: somebody emptied them.

A batch that brings rows leaves a table with some, whatever else it removes. What is empty at the next start, though
the last batch that wrote into it brought rows, was emptied by somebody else (TRUNCATE, DELETE), on every engine. No
identity tells that: only the ledger knows who wrote last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from migrator.model.progress import BadRow, Mapped
from migrator.ports.target import TargetRows


class Holding:
    """The targets that hold rows for sure, batch after batch."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def wrote(self, rows: Iterable[TargetRows]) -> None:
        """Takes note of a batch's rows. Those of joined targets aren't among them."""
        for one in rows:
            self._known[one.table.id.name] = one.brings_rows()

    def after(self, target: str, before: bool) -> bool:
        """Tells whether a target holds rows now; ``before``: whether it did when nothing was written yet."""
        return self._known.get(target, before)


def emptied(
    before: Iterable[Mapped],
    bad_rows: Iterable[BadRow],
    row_wise: Collection[str],
    holds_rows: Callable[[str], bool],
) -> set[str]:
    """Returns the targets that are empty, though the last batch of each left rows in it.

    Args:
        before: what the ledger says of each target.
        bad_rows: set aside: what a batch brought may be among them, so that their targets aren't asked about.
        row_wise: the targets that are no joined ones.
        holds_rows: tells whether a target has any row.
    """
    aside = {one.target for one in bad_rows}
    asked = sorted(
        one.target for one in before if one.holds and one.target in row_wise and one.target not in aside
    )
    return {name for name in asked if not holds_rows(name)}
