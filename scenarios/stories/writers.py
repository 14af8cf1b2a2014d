"""The writers of a story: its table of actions, run by :class:`~scenarios.workload.Workload`, and what they
share."""

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


def renumber(session: Session, table: str, old: object, new: object, children: Mapping[str, str]) -> None:
    """Gives a row another key, and the rows that refer to it by foreign keys with ON UPDATE CASCADE.

    MariaDB carries such a cascade out without logging it, so no migration can follow it (docs/how-to/grants-mysql.md,
    "Foreign keys that cascade"). There the application changes the children itself, without foreign key
    checks.

    Args:
        session: the transaction.
        table: whose key is the column ``<table>_id``.
        old: the key.
        new: the key from now on.
        children: table -> its column that refers to the key.
    """
    move = f"UPDATE {table} SET {table}_id = %s WHERE {table}_id = %s"
    if session.database.kind != "mariadb":
        session.change(move, new, old)
        return
    session.change("SET SESSION foreign_key_checks = 0")
    try:
        # the parent first: whoever adds a child meanwhile waits for it, and finds it gone
        session.change(move, new, old)
        for child, column in children.items():
            session.change(f"UPDATE {child} SET {column} = %s WHERE {column} = %s", new, old)
    finally:
        session.change("SET SESSION foreign_key_checks = 1")
