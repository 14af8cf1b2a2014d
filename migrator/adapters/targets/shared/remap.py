"""The record of the joined targets that were filled, read and changed from outside the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from migrator.adapters.targets.shared.refused import ConnectionLost, StatementRefused, temporary
from migrator.adapters.targets.shared.settings import CommonSettings
from migrator.errors import TargetError
from migrator.schema.acts import ActSql, note, values

ErrorT = TypeVar("ErrorT", bound=Exception)


class RemapSession(Protocol):
    """A short session of a target, in a transaction where it writes. Raises the driver's errors."""

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Runs one statement; returns how many rows it changed."""
        ...

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        ...


@dataclass(frozen=True, slots=True)
class FilledTargets:
    """The record of a migration.

    Attributes:
        table: quoted name of the record's table.
        filling: quoted name of the table of those that are being filled; empty where the mirror has none yet.
        settings: whose record it is.
        history: the history's statements in the words of the driver of short sessions.
    """

    table: str
    filling: str
    settings: CommonSettings
    history: ActSql

    def segments(self, session: RemapSession) -> list[tuple[str, int]]:
        """The targets, and the segment at which each was filled."""
        found = session.rows(
            f"SELECT target, segment FROM {self.table} WHERE migration = %s ORDER BY target",
            [self.settings.migration],
        )
        return [(str(name), int(segment)) for name, segment in found]

    def forget(self, session: RemapSession, target: str) -> bool:
        """Removes a target from the record and keeps the act in the history; False where it wasn't there.

        What is being filled is looked at first: that waits for a piece under way, which may be the last one.
        """
        migration = self.settings.migration
        changed = sum(
            session.run(f"DELETE FROM {table} WHERE migration = %s AND target = %s", [migration, target])
            for table in (self.filling, self.table)
            if table
        )
        if changed:
            act = values(
                migration, "remap", self.settings.server.user, reason=self.settings.reason, detail=target
            )
            note(session.run, session.rows, self.history, act)
        return bool(changed)

    @contextmanager
    def refusals_named(
        self,
        errors: type[ErrorT] | tuple[type[ErrorT], ...],
        explained: Callable[[ErrorT], StatementRefused | ConnectionLost],
    ) -> Iterator[None]:
        """Names what the server refuses within. Lost connections stay as they are: the session's owner names them.

        Args:
            errors: of the driver.
            explained: says what one of them is.
        """
        try:
            yield
        except errors as error:
            found = explained(error)
            if isinstance(found, ConnectionLost):
                raise
            if found.retryable():
                raise temporary(found) from None
            raise TargetError(
                "the mirror's record of filled targets can't be changed",
                where=self.table,
                cause=found.cause(),
                remedy="run the command with the user that the migration uses",
            ) from None
