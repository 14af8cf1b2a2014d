"""Identities of target tables while a run writes: another table under the name of one gets no row.

PostgreSQL numbers tables, and a number is one table's alone. MySQL and MariaDB tell when a table was made; an ALTER
moves that too, so that there only a table without rows is surely another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from migrator.errors import TargetError


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

    def compared(self, found: Sequence[Sequence[object]]) -> None:
        """Takes note of tables that are seen for the first time.

        ``found``: table, column, type and the table's identity of each column. Raises ``MadeAnew``.
        """
        now = {_text(table): _text(number) for table, _, _, number in found}
        others = [name for name, number in now.items() if self._seen.setdefault(name, number) != number]
        if others:
            raise MadeAnew(sorted(others))

    def wrote(self, tables: Iterable[str]) -> None:
        """Takes note of tables into which rows were written."""
        self._written.update(tables)

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


def _replaced(tables: Sequence[str], where: str) -> TargetError:
    """Returns the error for tables that were replaced. ``where``: the target."""
    names = ", ".join(tables)
    return TargetError(
        f"a target table was replaced while we run: {names}",
        where=f"{where}, {names}",
        cause="it was dropped and made again, or another one was given its name: rows applied so far are elsewhere",
        remedy="start again: the next start says how it gets all rows; nothing of this batch was written. If the"
        " table that it was is there under another name, give it its name back first",
    )


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
