"""The writers of a story: its table of actions, run by :class:`~scenarios.workload.Workload`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from scenarios.database import Database
from scenarios.session import Session
from scenarios.workload import Action, Workload


class StoryWriters(Workload):
    """Clients that do what the story's application does.

    Args:
        database: a database filled by the story's ``old_schema``.
        seed: decides what each thread draws.
        rate_per_s: row changes per second over all threads; None for as fast as it goes.
        threads: number of writers, each with its own connection.
        limit_row_changes: stop by itself after about so many row changes.

    Attributes:
        ACTIONS: name of an action -> (weight, what it does).
    """

    ACTIONS: ClassVar[Mapping[str, tuple[int, Callable[[Session], None]]]]

    def __init__(
        self,
        database: Database,
        seed: int = 1,
        rate_per_s: float | None = 50.0,
        threads: int = 3,
        *,
        limit_row_changes: int | None = None,
    ):
        actions = [Action(name, weight, run) for name, (weight, run) in self.ACTIONS.items()]
        super().__init__(
            database,
            actions,
            seed=seed,
            rate_per_s=rate_per_s,
            threads=threads,
            limit_row_changes=limit_row_changes,
        )
