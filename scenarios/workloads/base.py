"""The interface of every workload to the runner, the recorders and the observers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.workload import Action
from verify.history.history import TrackedTable


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in which a tracked table's provenance stands on one side.

    Attributes:
        table: name of the table on that side.
        keys: its primary key columns, in the key's order; a row's key text is their values joined by ``-``
            (:func:`key_text`). They are integers or text.
        session: column of the client's number.
        number: column of the client's rising write number.
        value: column of the value, an integer type, or "".
    """

    table: str
    keys: tuple[str, ...]
    session: str
    number: str
    value: str = ""


def key_text(values: Sequence[object]) -> str:
    """The text of a key made of these values: the same on both sides, whatever the columns' integer types."""
    return "-".join(str(value) for value in values)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A tracked table on both sides; ``old`` and ``new`` hold the same rows, one to one, under the same keys."""

    table: TrackedTable
    old: Columns
    new: Columns


class Workload(Protocol):
    """One kind of writers with its schema and its project."""

    @property
    def name(self) -> str:
        """The workload's name in scenarios."""
        ...

    @property
    def tracked(self) -> Sequence[Tracked]:
        """The workload's tables with provenance."""
        ...

    @property
    def project(self) -> Path:
        """Folder with ``mapping.py`` and ``alembic/``, an ordinary migration project."""
        ...

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Creates the old schema and its first rows (session 0, rising numbers), committed.

        Raises ``MigratorError`` if this workload can't be had on that engine or machine.
        """
        ...

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The writers' transactions; every row write is noted with its provenance. Call it once a run."""
        ...
