"""The account of ``migrator init``: a line at a time for people, or one document at the end for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from migrator.cli.options import print_document


@dataclass(frozen=True, slots=True)
class BegunTable:
    """A table that the mapping file has.

    Attributes:
        name: of the table.
        sources: the tables that its rows come from, as far as that follows.
        gaps: columns that nothing fills yet.
        why: the reason why nobody but the author can say where its rows come from; empty where that follows.
    """

    name: str
    sources: Sequence[str]
    gaps: Sequence[str]
    why: str = ""


@dataclass(slots=True)
class Begun:
    """The account of one project. ``as_json``: nothing is printed before ``print``."""

    as_json: bool
    migration: str = ""
    _files: list[dict[str, str]] = field(default_factory=list)
    _tables: list[dict[str, Any]] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _to_write: str = ""
    _next: str = ""

    def file(self, path: Path, done: str = "wrote") -> None:
        """A file was written, or lines were ``added to`` it."""
        self._files.append({"path": str(path), "done": done})
        self._say(f"{done} {path}")

    def table(self, table: BegunTable, said: str) -> None:
        """A table of the mapping file; ``said``: in one line."""
        entry = {"table": table.name, "from": list(table.sources), "gaps": list(table.gaps), "why": table.why}
        self._tables.append(entry)
        self._say(said)

    def note(self, text: str) -> None:
        """Something that isn't part of the file."""
        self._notes.append(text)
        self._say(f"note: {text}")

    def to_write(self, command: str, said: str) -> None:
        """A command that is left to whoever has access to the new database; ``said``: why, behind it."""
        self._to_write = command
        self._say(f"to write: {command}{said}")

    def next(self, text: str) -> None:
        """The step that is left to whoever began the project."""
        self._next = text
        self._say(f"next: {text}")

    def print(self) -> None:
        """Prints the document, where one was asked for."""
        if self.as_json:
            print_document(self.document())

    def document(self) -> dict[str, Any]:
        """The document of `migrator init --json` (docs/schemas/init.schema.json)."""
        return {
            "format": 1,
            "migration": self.migration,
            "files": self._files,
            "tables": self._tables,
            "notes": self._notes,
            "to_write": self._to_write,
            "next": self._next,
        }

    def _say(self, text: str) -> None:
        if not self.as_json:
            click.echo(text)
