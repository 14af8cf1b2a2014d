"""What a mirror that is there already must have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from migrator.errors import TargetError
from migrator.model.codec import NEWER
from migrator.model.ledger import Ledger
from migrator.model.table import TableSchema

FORMAT = 1
"""Number of the present layout: mirrored tables, numbers of grains, and what is kept about them."""
COMMENT = "migrator mirror, format "
"""Of the table ``filled``, in front of the number. Without one it has the first format."""


def refuse_newer(comment: str | None, where: str) -> None:
    """Raises ``TargetError`` for the comment of a mirror that this version doesn't know."""
    found = (comment or "").removeprefix(COMMENT)
    if comment and found.isdecimal() and int(found) > FORMAT:
        raise TargetError(
            "the mirror of the source's tables was made by a newer version of the migrator",
            where=where,
            cause=f"its format is {found}, this version knows formats up to {FORMAT}",
            remedy=NEWER,
        )


def refuse_late(schema: TableSchema, ledger: Ledger, where: str) -> None:
    """Raises ``TargetError`` when a table that isn't mirrored yet was dumped already."""
    dump = None if ledger.checkpoint is None else ledger.checkpoint.dump_of(schema.id)
    if dump is not None and (dump.rows or dump.done):
        raise TargetError(
            f"a joined mapping reads {schema.id}, which was dumped before anything joined it",
            where=where,
            cause="its rows passed without being kept in the mirror",
            remedy="start a migration of another name with an empty target, or take the table out of the mapping",
        )


def wrong_columns(
    schema: TableSchema,
    where: str,
    wanted: Mapping[str, str],
    present: Mapping[str, str],
    read: Collection[str],
) -> None:
    """Raises ``TargetError`` for columns of another type than wanted, and for missing ones that are read."""
    wrong = [
        name
        for name in wanted
        if (name in present and present[name] != wanted[name]) or (name in read and name not in present)
    ]
    if wrong:
        raise TargetError(
            f"the mirror of {schema.id} doesn't hold what the mapping reads",
            where=f"{where}, column {', '.join(wrong)}",
            cause="the column was added to the source, or changed its type, after the table was dumped",
            remedy="take the column out of the mapping, or start a migration of another name with an empty target",
        )
