"""Identities of target tables while a run writes: another table under the name of one gets no row.

PostgreSQL numbers tables, and a number is one table's alone; their files have numbers too, which TRUNCATE changes,
and VACUUM FULL. MySQL and MariaDB tell when a table was made; an ALTER moves that too. So only a table that has no
rows, and had some, is surely another one or was emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from migrator.errors import TargetError
from migrator.ports.target import TargetRows


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
        self._written: set[str] = set()
        self._holding: set[str] = set()

    def compared(self, found: Sequence[Sequence[object]]) -> None:
        """Takes note of tables that are seen for the first time.

        ``found``: table, column, type and the table's identity of each column. Raises ``MadeAnew``.
        """
        now = {as_text(table): as_text(number) for table, _, _, number in found}
        others = [name for name, number in now.items() if self._seen.setdefault(name, number) != number]
        if others:
            raise MadeAnew(sorted(others))

    def wrote(self, batch: Iterable[TargetRows]) -> None:
        """Takes note of a batch's rows, once it is committed."""
        for rows in batch:
            name = rows.table.id.name
            if rows.brings_rows():
                self._written.add(name)
                self._holding.add(name)
            else:
                self._holding.discard(name)

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

    def among_written(self, tables: Iterable[str]) -> list[str]:
        """Returns those of some tables into which rows were written."""
        return [name for name in tables if name in self._written]

    def among_holding(self, tables: Iterable[str]) -> list[str]:
        """Returns those of some tables that hold rows for sure: the last batch that wrote into them brought some."""
        return [name for name in tables if name in self._holding]

    def seen(self, table: str) -> str:
        """Returns the identity with which a table was seen first; "" if it wasn't."""
        return self._seen.get(table, "")


def _replaced(tables: Sequence[str], where: str) -> TargetError:
    """Returns the error for tables that were replaced. ``where``: the target."""
    names = ", ".join(tables)
    return TargetError(
        f"a target table was replaced while we run: {names}",
        where=f"{where}, {names}",
        cause="it was dropped and made again, or emptied by TRUNCATE, or another one was given its name: rows applied"
        " so far are elsewhere, or gone",
        remedy="start again: the next start says how it gets all rows; nothing of this batch was written. If the"
        " table that it was is there under another name, give it its name back first",
    )


def as_text(value: object) -> str:
    """Returns what a catalogue answered as text, whatever the driver makes of it."""
    return value.decode() if isinstance(value, bytes) else str(value)
