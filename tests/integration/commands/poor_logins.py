"""Logins that have exactly what `migrator grants` prints, and which PUBLIC's rights don't help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from migrator.model.grants import Grants
from tests.integration.run_project import Project
from tests.servers import Database


@dataclass
class Poor:
    """A project whose logins have what the scripts gave them; ``needed`` has each statement with its side."""

    project: Project
    needed: list[tuple[Database, str]]


@contextmanager
def by_scripts(sides: Sequence[Database], scripts: Sequence[Grants]) -> Iterator[list[tuple[Database, str]]]:
    """Makes the login of each side by its script, and removes it; yields each statement that gave rights."""
    needed: list[tuple[Database, str]] = []
    for database, script in zip(sides, scripts, strict=True):
        if database.kind == "postgresql":
            database.execute(
                f"REVOKE ALL ON DATABASE {database.database} FROM PUBLIC",
                "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            )
        database.execute(script.make.rstrip(";").replace("'...'", "'poor'"), *script.needed)
        query = listing(script)
        shown = [str(row[0]).rstrip(";") for row in database.query(query)] if query else []
        database.execute(*shown)
        needed += [(database, statement) for statement in (*script.needed, *shown)]
    yield needed
    for database, script in zip(sides, scripts, strict=True):
        if database.kind == "postgresql":
            database.execute(f"DROP OWNED BY {script.account} CASCADE", f"DROP ROLE {script.account}")
        else:
            database.execute(f"DROP USER {script.account}")


def listing(script: Grants) -> str:
    """The query that prints further statements, where a script has one."""
    return next((statement for statement, _ in script.perhaps if statement.startswith("SELECT")), "")
