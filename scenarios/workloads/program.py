"""Runs foreign clients: benchmark programs that write to tables of their own, and note no single write."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from migrator.embedded.postgres import postgres_installation
from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.session import ClientFailed

_TIMEOUT_S = 120.0
_SHOWN_LINES = 3


def find(name: str, remedy: str) -> str:
    """Full path of a program: from the embedded PostgreSQL if it comes with one, else from PATH.

    Raises ``MigratorError`` with this remedy if there is none.
    """
    path = shutil.which(name, path=_embedded_folder()) or shutil.which(name)
    if path is None:
        raise MigratorError(
            f"this workload needs the program {name}",
            where="workload: name",
            cause="it is not on the PATH",
            remedy=remedy,
        )
    return path


def run_to_set_up(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program that has to succeed. Raises ``MigratorError`` with its last words."""
    try:
        run_as_client(arguments, environment)
    except ClientFailed as error:
        raise MigratorError("the tables can't be made", where=arguments[0], cause=str(error)) from error


def run_as_client(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program as an action of a workload. Raises ``ClientFailed`` with its last words if it fails or
    hangs."""
    try:
        ended = subprocess.run(
            list(arguments),
            env={**plain_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ClientFailed(f"it did not end within {_TIMEOUT_S:g} s") from error
    if ended.returncode:
        lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise ClientFailed("; ".join(lines[-_SHOWN_LINES:]) or f"it ended with code {ended.returncode}")


def as_options(database: Database) -> list[str]:
    """A PostgreSQL database as the options that all of its programs take; the database's name is last."""
    return [
        f"--host={database.host}",
        f"--port={database.port}",
        f"--username={database.user}",
        database.database,
    ]


def as_environment(database: Database) -> dict[str, str]:
    """Returns the environment that PostgreSQL's programs need: schema, password, how long to wait for a server."""
    options = {"PGOPTIONS": f"-c search_path={database.schema}", "PGCONNECT_TIMEOUT": "5"}
    return options | ({"PGPASSWORD": database.password} if database.password else {})


def _embedded_folder() -> str | None:
    try:
        return str(postgres_installation() / "bin")
    except MigratorError:
        return None  # only the `embedded` extra has one
