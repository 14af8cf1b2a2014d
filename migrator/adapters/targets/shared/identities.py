"""Identities of target tables while a run writes: another table under the name of one gets no row.

PostgreSQL numbers tables, and a number is one table's alone; their files have numbers too, which TRUNCATE changes,
and VACUUM FULL. MySQL and MariaDB tell when a table was made; an ALTER moves that too. So only a table that has no
rows, and had some, is surely another one or was emptied.

Which tables have rows the ledger says. A leader's first batch for a table looks whether it still has some: what
somebody did since the start has no identity of before to be compared with. A batch that brings a table rows leaves
it with some; after any other one the table is looked at, in the batch's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from migrator.errors import TargetError
from migrator.model.progress import Checkpoint, Mapped
from migrator.ports.target import TargetBatch


class MadeAnew(Exception):
    """Some tables aren't the ones that they were, as far as their identities tell.

    Attributes:
        tables: their names.
    """

    def __init__(self, tables: Sequence[str]):
        super().__init__(", ".join(tables))
        self.tables = tuple(tables)


class Identities:
    """The identities of target tables, as the batches of a run see them."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._held: dict[str, bool | None] = {}
        self._led = False
        self._looked_at: set[str] = set()

    def compared(self, found: Sequence[Sequence[object]]) -> None:
        """Takes note of tables that are seen for the first time.

        ``found``: table, column, type and the table's identity of each column. Raises ``MadeAnew``.
        """
        now = {as_text(table): as_text(number) for table, _, _, number in found}
        others = [name for name, number in now.items() if self._seen.setdefault(name, number) != number]
        if others:
            raise MadeAnew(sorted(others))

    def begun(
        self, batch: TargetBatch, ledger: Checkpoint | None, has_rows: Callable[[str], bool], where: str
    ) -> None:
        """Looks at the tables that this leader hasn't written into yet, before a batch does.

        Args:
            batch: what is about to be written. A leader's first one says what it goes by: a start may know better
                than the ledger.
            ledger: what the ledger says, in the same transaction.
            has_rows: tells, in the same transaction, whether a table has any.
            where: the target, for messages.

        Raises ``TargetError`` for tables that somebody has emptied.
        """
        known = ledger if self._led and ledger is not None else batch.checkpoint
        self._held = {one.target: one.holds for one in known.mapped or ()}
        names = {rows.table.id.name for rows in batch.rows} - self._looked_at
        empty = [name for name in self.among_holding(sorted(names)) if not has_rows(name)]
        if empty:
            raise _replaced(empty, where)

    def holding(
        self, batch: TargetBatch, aside: Collection[str], has_rows: Callable[[str], bool]
    ) -> tuple[Mapped, ...] | None:
        """Returns the ledger's entries for the targets, which say what has rows now that a batch is written.

        Args:
            batch: what was written. One of changes that were made on this side says that others write here, too:
                what has rows isn't known any more.
            aside: targets of which rows were taken out of the batch, or of the table.
            has_rows: tells, in the same transaction, whether a table has any.
        """
        if batch.checkpoint.mapped is None:
            return None
        if batch.echo:
            return tuple(replace(one, holds=None) for one in batch.checkpoint.mapped)
        brought = {rows.table.id.name: rows.brings_rows() for rows in batch.rows}
        brought |= {name: False for name in aside if self._held.get(name) or name in brought}
        now = self._held | {name: brings or has_rows(name) for name, brings in brought.items()}
        return tuple(replace(one, holds=now.get(one.target)) for one in batch.checkpoint.mapped)

    def wrote(self, batch: TargetBatch) -> None:
        """Takes note of a batch that is committed."""
        self._led = True
        self._looked_at |= {rows.table.id.name for rows in batch.rows}

    def kept(
        self, write: Callable[[], None], others: Callable[[Sequence[str]], Sequence[str]], where: str
    ) -> None:
        """Writes; once more, where tables have other identities and are the same all the same.

        Args:
            write: writes all or nothing, and compares.
            others: tells, of such tables, those that surely are other ones.
            where: the target, for messages.

        Raises ``TargetError`` for other ones: nothing was written into them.
        """
        try:
            write()
        except MadeAnew as changed:
            found = others(changed.tables)
            if found:
                raise _replaced(found, where) from None
            for name in changed.tables:
                self._seen.pop(name, None)
            write()

    def among_holding(self, tables: Sequence[str]) -> list[str]:
        """Returns those of some tables that had rows after the last batch."""
        return [name for name in tables if self._held.get(name)]

    def seen(self, table: str) -> str:
        """Returns the identity with which a table was seen first; "" if it wasn't."""
        return self._seen.get(table, "")


def any_row(table: str, key: Sequence[str]) -> str:
    """SQL that finds a row where there is one, from the end of the primary key.

    Where old rows are deleted, a table and its key begin with what is left of them, which a server reads through.

    Args:
        table: quoted.
        key: its columns, quoted; none: not known.
    """
    order = f" ORDER BY {', '.join(f'{column} DESC' for column in key)}" if key else ""
    return f"SELECT 1 FROM {table}{order} LIMIT 1"


def _replaced(tables: Sequence[str], where: str) -> TargetError:
    """Returns the error for tables that were replaced. ``where``: the target."""
    names = ", ".join(tables)
    return TargetError(
        f"a target table was replaced while we run: {names}",
        where=f"{where}, {names}",
        cause="it was dropped and made again, or emptied by TRUNCATE, or DELETE, or another one was given its name:"
        " rows applied so far are elsewhere, or gone",
        remedy="start again: the next start says how it gets all rows; nothing of this batch was written. If the"
        " table that it was is there under another name, give it its name back first",
    )


def as_text(value: object) -> str:
    """Returns what a catalogue answered as text, whatever the driver makes of it."""
    return value.decode() if isinstance(value, bytes) else str(value)
