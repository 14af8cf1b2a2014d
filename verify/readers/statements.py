"""Statements that would mend a target, in the words of its engine: a port, with a module per engine."""

from __future__ import annotations

from typing import Protocol


class Statements(Protocol):
    """Quoting and statements of an engine, for people to read and run."""

    @property
    def begin(self) -> str:
        """Statements that make a session mean what these do, and begin a transaction."""
        ...

    def name(self, name: str) -> str:
        """Quotes the name of a column."""
        ...

    def table(self, name: str) -> str:
        """Quotes the name of a target table."""
        ...

    def literal(self, value: str | None, base: str) -> str:
        """Writes a value of a type, by its text as the judge read it."""
        ...

    def same(self, column: str, literal: str) -> str:
        """Writes the condition that both are the same, or both NULL."""
        ...

    def insert(self, table: str, key: str, columns: str, values: str) -> str:
        """Writes the statement that adds a row unless its key is there; ``key``: the key's first column."""
        ...
