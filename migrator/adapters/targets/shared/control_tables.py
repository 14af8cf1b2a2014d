"""The tool's own tables in a target, foreign keys from outside to the mapping's, and refusals of short sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from migrator.adapters.targets.shared.refused import ConnectionLost, StatementRefused, temporary
from migrator.errors import TargetError
from migrator.model.table import TableId


@dataclass(frozen=True, slots=True)
class ControlTables:
    """The tool's own tables in a target, shared by all migrations of it.

    Attributes:
        filled: the mirror's record of filled targets.
        mirror: the schema or database of the mirror, in words.
        beside: other tables of the mirror with rows of each migration.
        schema: the place of all others, in words.
    """

    ledger: TableId
    history: TableId
    entries: TableId
    counters: TableId
    filled: TableId
    mirror: str
    schema: str
    beside: tuple[TableId, ...] = ()


@dataclass(frozen=True, slots=True)
class Pointing:
    """Rows of a table that no mapping fills, which point at rows of one that a mapping does.

    Attributes:
        child, parent: the tables.
        key: the foreign key's name.
        columns: the child's, which point.
    """

    child: TableId
    parent: TableId
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusals:
    """The driver's errors, and what one of them is."""

    errors: type[Exception] | tuple[type[Exception], ...]
    explained: Callable[[Any], StatementRefused | ConnectionLost]

    @contextmanager
    def named(self, what: str, where: str, remedy: str) -> Iterator[None]:
        """Names what the server refuses within. Lost connections stay as they are: the session's owner names them."""
        try:
            yield
        except self.errors as error:
            found = self.explained(error)
            if isinstance(found, ConnectionLost):
                raise
            if found.retryable():
                raise temporary(found) from None
            raise TargetError(what, where=where, cause=found.cause(), remedy=remedy) from None
