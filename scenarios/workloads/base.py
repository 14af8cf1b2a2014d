"""What every workload offers to the runner, the recorders and the observers."""

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
    """Where a tracked table's provenance stands on one side.

    Attributes:
        table: name of the table on that side.
        key: its primary key column.
        session: column of the client's number.
        number: column of the client's rising write number.
        value: column of the value, or "".
    """

    table: str
    key: str
    session: str
    number: str
    value: str = ""


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
        """As scenarios name it."""
        ...

    @property
    def tracked(self) -> Sequence[Tracked]:
        """Its tables with provenance."""
        ...

    @property
    def project(self) -> Path:
        """Folder with ``mapping.py`` and ``alembic/``, an ordinary migration project."""
        ...

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Creates the old schema and its first rows (session 0, rising numbers), committed."""
        ...

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The writers' transactions; every row write is noted with its provenance."""
        ...
