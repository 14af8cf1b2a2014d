"""Checks of a mirror that is there already: what it must have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from migrator.errors import TargetError
from migrator.model.codecs.codec import NEWER
from migrator.model.ledger import Ledger
from migrator.model.progress import MIRROR
from migrator.model.reach import VALUE
from migrator.model.table import TableSchema
from migrator.ports.log_notes import earlier_names, renamed_in
from migrator.ports.mirror import JoinedTarget

FORMAT = 3
"""Number of the present layout: mirrored tables, numbers of grains, and what is kept about them.

The first one had keys no longer than an index takes, and text as text on PostgreSQL; the second one no record of
targets that are being filled. They are brought up to date where they are found.
"""
COMMENT = "migrator mirror, format "
"""The comment of the table ``filled``, in front of the format's number. Without a comment it has the first format."""


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


def needed(schema: TableSchema, targets: Sequence[JoinedTarget]) -> tuple[str, ...]:
    """The columns without which the targets can't be kept in step: all that a mirror has of a very wide table."""
    found = set(schema.key) | {name for name in schema.names() if name.startswith(VALUE)}
    for target in targets:
        found.update(target.columns.get(schema.id.name, ()))
        for reach in target.reaches:
            for node in reach.nodes:
                if node.schema.id == schema.id:
                    found.update(node.columns)
                if node.above is not None and reach.nodes[node.above].schema.id == schema.id:
                    found.update(node.above_columns)
            if reach.root.schema.id == schema.id:
                found.update(reach.grain)
    return tuple(name for name in schema.names() if name in found)


def too_wide(where: str, cause: str) -> TargetError:
    """The joined mappings read more columns of a table than a table of the target's server can have."""
    return TargetError(
        "the mirror can't hold the columns that joined mappings read of a source table",
        where=where,
        cause=cause,
        remedy="read fewer of its columns in mappings that join or group, or leave the table to row-wise ones",
    )


def refuse_late(schema: TableSchema, ledger: Ledger, where: str) -> None:
    """Raises ``TargetError`` when a table that isn't mirrored yet was dumped already, and isn't once more: the ledger
    is an earlier version's."""
    dump = None if ledger.checkpoint is None else ledger.checkpoint.dump_of(schema.id)
    if dump is not None and not out_of_step(schema, ledger) and (dump.rows or dump.done):
        raise TargetError(
            f"a joined mapping reads {schema.id}, which was dumped before anything joined it",
            where=where,
            cause="its rows passed without being kept in the mirror",
            remedy="start a migration of another name with an empty target, or take the table out of the mapping",
        )


def refuse_another_key(schema: TableSchema, ledger: Ledger, where: str) -> None:
    """Raises ``TargetError`` where the mirror's rows are told apart by another key than the source's by now.

    A rename of its columns is none. A ledger of an earlier version doesn't say by which key a table was dumped.
    """
    checkpoint = ledger.checkpoint
    dump = None if checkpoint is None else checkpoint.dump_of(schema.id)
    if checkpoint is None or dump is None or not dump.key:
        return
    pairs = renamed_in(checkpoint.notes).get(schema.id, ())
    names = [(name, *earlier_names(pairs, name)) for name in schema.key]
    known = [any(was in (one, *_beginnings(one)) for one in dump.key for was in were) for were in names]
    if not all(known) or len(dump.key) != len(names):
        raise TargetError(
            f"the mirror of {schema.id} tells its rows apart by another key than the table has by now",
            where=where,
            cause=f"the table was dumped by the key ({', '.join(dump.key)}), which is ({', '.join(schema.key)}) now",
            remedy="give the table that key again, or start the migration anew (docs/how-to/start-anew.md)",
        )


def _beginnings(key: str) -> tuple[str, ...]:
    """All texts that may be the column's name in a part of a dump's key, in which its type follows."""
    return tuple(key[:place] for place, character in enumerate(key) if character == " ")


def out_of_step(schema: TableSchema, ledger: Ledger) -> bool:
    """Tells whether nobody mirrored the table for a while, or ever: what a mirror has of it is of an earlier time.

    All of its rows are dumped from now on. A ledger of an earlier version doesn't say so.
    """
    fed = None if ledger.checkpoint is None else ledger.checkpoint.fed
    return fed is not None and (MIRROR, schema.id) not in fed


def outdated(
    present: Mapping[str, str],
    wanted: Mapping[str, str],
    needed_now: Collection[str],
    ours: tuple[str, ...] = (VALUE,),
) -> tuple[str, ...]:
    """The mirror's columns that the source has no more, or no more of that type, and that nothing needs: they have to
    go. A later column of the same name would be taken for them, with values that were never its own.

    Args:
        present, wanted: types by the columns' names in the mirror.
        needed_now: names there of those that mappings need; what is wrong with one of them is an error.
        ours: beginnings of the names of columns that only the mirror has.
    """
    return tuple(
        name
        for name, kind in present.items()
        if not name.startswith(ours) and wanted.get(name) != kind and name not in needed_now
    )


def renamed(
    schema: TableSchema,
    ledger: Ledger,
    present: Mapping[str, str],
    wanted: Mapping[str, str],
    needed_now: Collection[str],
) -> tuple[tuple[str, str], ...]:
    """The mirror's columns that the source has under another name by now, old and new: their values stay.

    That they are the same columns the log reader has proved, in the notes of the ledger's checkpoint. ``present``,
    ``wanted``, ``needed_now``: see ``outdated``, by the source's names.
    """
    notes = () if ledger.checkpoint is None else ledger.checkpoint.notes
    pairs = renamed_in(notes).get(schema.id, ())
    found = []
    for new in needed_now:
        old = next((name for name in earlier_names(pairs, new) if name in present), None)
        if new not in present and old is not None and present[old] == wanted[new]:
            found.append((old, new))
    return tuple(found)


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
            cause="the column was added to the source, changed its type, or got its name while no run ran, after the"
            " table was dumped; or the table has so many columns that its mirror was made without those that nothing"
            " read",
            remedy="where it only got another name: give it the old one again, start the run, and rename it then;"
            " else take the column out of the mapping, or start a migration of another name with an empty target",
        )
