"""Identities of target tables while a run writes: another table under the name of one gets no row.

PostgreSQL numbers tables, and a number is one table's alone; their files have numbers too, which TRUNCATE changes,
and VACUUM FULL. MySQL and MariaDB tell when a table was made; an ALTER moves that too. So only a table that has no
rows, and had some, is surely another one or was emptied.

Which tables have rows the ledger says. Each batch looks whether those that it may write into still have some, in its
transaction: no identity tells a DELETE, nor on MySQL and MariaDB a TRUNCATE, and what somebody did between the start
and a leader's first batch has no identity of before to be compared with. Until the COMMIT nobody truncates what was
read there. A batch that brings a table rows leaves it with some; after any other one the table is looked at, in the
batch's transaction. Rows of joined targets are mapped inside of it, so that they are seen as they pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrator.errors import TargetError
from migrator.model.progress import Checkpoint, Mapped
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch, TargetRows

WithRows = Callable[[Sequence[str]], Collection[str]]
"""Returns, in the same transaction, those of some tables that have rows."""


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
        self._joined: tuple[JoinedTarget, ...] = ()
        self._passed: dict[str, bool] = {}
        self._seen: dict[str, str] = {}
        self._held: dict[str, bool | None] = {}
        self._led = False

    def compared(self, found: Sequence[Sequence[object]]) -> None:
        """Takes note of tables that are seen for the first time.

        ``found``: table, column, type and the table's identity of each column. Raises ``MadeAnew``.
        """
        now = {as_text(table): as_text(number) for table, _, _, number in found}
        others = [name for name, number in now.items() if self._seen.setdefault(name, number) != number]
        if others:
            raise MadeAnew(sorted(others))

    def joined(self, targets: Iterable[JoinedTarget]) -> None:
        """Takes note of the joined targets; which of them a batch may write into its mirrored rows tell."""
        self._joined = tuple(targets)

    def begun(self, batch: TargetBatch, ledger: Checkpoint | None, with_rows: WithRows, where: str) -> None:
        """Looks at the tables that a batch may write into, before it does.

        Args:
            batch: what is about to be written. A leader's first one says what it goes by: a start may know better
                than the ledger.
            ledger: what the ledger says, in the same transaction.
            with_rows: asked once, if at all.
            where: the target, for messages.

        Raises ``TargetError`` for tables that somebody has emptied.
        """
        known = ledger if self._led and ledger is not None else batch.checkpoint
        self._held = {one.target: one.holds for one in known.mapped or ()}
        self._passed = {}
        if empty := self.emptied(sorted(self._written(batch)), with_rows):
            raise _replaced(empty, where)

    def seen_passing(self, batch: TargetBatch) -> TargetBatch:
        """The same batch, whose joined rows are seen when they come. Of one table there may be several parts."""
        joined = batch.joined
        if joined is None:
            return batch
        return replace(batch, joined=lambda mirror: self._passing(joined(mirror)))

    def _passing(self, parts: Iterable[TargetRows]) -> Iterator[TargetRows]:
        for rows in parts:
            self._passed[rows.table.id.name] = rows.leaves_rows()
            yield rows

    def _written(self, batch: TargetBatch) -> set[str]:
        """Returns the tables that a batch may write into.

        A piece of those that are being filled has no other rows. Until a leader has written a batch, it may be one of
        a table that the start has found empty.
        """
        if batch.echo:
            return set()
        moved = {rows.schema.id for rows in batch.mirror}
        joined = {
            one.table.id.name for one in self._joined if moved & {table.id for table in one.sources.values()}
        }
        filling = {one.target for one in batch.checkpoint.filling} if self._led else set()
        return {rows.table.id.name for rows in batch.rows} | joined | filling

    def holding(
        self, batch: TargetBatch, aside: Collection[str], with_rows: WithRows
    ) -> tuple[Mapped, ...] | None:
        """Returns the ledger's entries for the targets, which say what has rows now that a batch is written.

        Args:
            batch: what was written. One of changes that were made on this side says that others write here, too:
                what has rows isn't known any more.
            aside: targets of which rows were taken out of the batch, or of the table.
            with_rows: asked once, if at all.
        """
        if batch.checkpoint.mapped is None:
            return None
        if batch.echo:
            return tuple(replace(one, holds=None) for one in batch.checkpoint.mapped)
        left = {rows.table.id.name: rows.leaves_rows() for rows in batch.rows} | self._passed
        left |= {name: False for name in aside if self._held.get(name) or name in left}
        unsure = sorted(name for name, rows in left.items() if not rows)
        found = with_rows(unsure) if unsure else ()
        now = self._held | {name: rows or name in found for name, rows in left.items()}
        return tuple(replace(one, holds=now.get(one.target)) for one in batch.checkpoint.mapped)

    def wrote(self) -> None:
        """Takes note of a batch that is committed."""
        self._led = True

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

    def emptied(self, tables: Sequence[str], with_rows: WithRows) -> list[str]:
        """Returns those of some tables that had rows after the last batch, and have none."""
        asked = self.among_holding(tables)
        found = with_rows(asked) if asked else ()
        return [name for name in asked if name not in found]

    def among_holding(self, tables: Sequence[str]) -> list[str]:
        """Returns those of some tables that had rows after the last batch."""
        return [name for name in tables if self._held.get(name)]

    def seen(self, table: str) -> str:
        """Returns the identity with which a table was seen first; "" if it wasn't."""
        return self._seen.get(table, "")


def rows_there(
    ask: Callable[[str, Sequence[object]], Iterable[Sequence[Any]]],
    keys: Mapping[str, Sequence[str]],
    qualified: Callable[[str], str],
    quoted: Callable[[str], str],
) -> WithRows:
    """Returns what tells which target tables have rows.

    Args:
        ask: runs a query in the session that is asked.
        keys: columns of primary keys by table, as far as they are known.
        qualified: quotes a table's name, with the place where it is.
        quoted: quotes a column's name.
    """

    def there(names: Sequence[str]) -> set[str]:
        looked_at = [(qualified(name), [quoted(column) for column in keys.get(name, ())]) for name in names]
        return {names[place] for (place,) in ask(any_row(looked_at), [])}

    return there


def any_row(tables: Sequence[tuple[str, Sequence[str]]], besides: str = "") -> str:
    """SQL that returns the places, from 0 on, of those of some tables that have a row, looked for from the end of the
    primary key.

    Where old rows are deleted, a table and its key begin with what is left of them, which a server reads through.

    Args:
        tables: each one's name and its key's columns, quoted; no columns: not known.
        besides: what is returned of the row, beside the place.
    """
    looks, more = [], f", {besides}" if besides else ""
    for place, (table, key) in enumerate(tables):
        order = f" ORDER BY {', '.join(f'{column} DESC' for column in key)}" if key else ""
        looks.append(f"(SELECT {place}{more} FROM {table}{order} LIMIT 1)")
    return " UNION ALL ".join(looks)


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
