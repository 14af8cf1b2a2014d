"""The old schema for a throw-away server: from a file or dump, Alembic revisions, or a database's structure."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sqlalchemy import URL

from migrator.embedded.postgres import postgres_installation
from migrator.errors import ConfigError
from migrator.schema import Manner, upgrade_user_target
from scenarios.chaos.addresses import addressed, is_address
from scenarios.database import Database
from scenarios.rehearsal import sides

_REMEDY = "name a SQL file, a folder of Alembic revisions, or an address like postgresql://user@host/database"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql", "mysql": "mysql+pymysql"}


def loaded(old: Database, origin: str, folder: Path) -> None:
    """Makes the old schema.

    Args:
        old: an empty database.
        origin: a file, a folder of revisions, or an address, of which only the structure is read.
        folder: for the structure that an address gives.

    Raises ``ConfigError`` for what can't be used, ``MigratorError`` where revisions fail.
    """
    if is_address(origin):
        file = folder / "old-structure.sql"
        file.write_text(_structure(old, origin))
    else:
        file = Path(origin)
    if file.is_dir():
        _revised(old, file)
    elif file.is_file():
        sides.loaded(old, sides.read(file, old), file)
    else:
        raise ConfigError(
            "the old schema can't be read", where=origin, cause="there is no such file", remedy=_REMEDY
        )


def _revised(old: Database, folder: Path) -> None:
    url = URL.create(_DRIVERS[old.kind], old.user, old.password or None, old.host, old.port, old.database)
    upgrade_user_target(url, folder, "head", Manner(old.schema if old.kind == "postgresql" else "", 0))


def _structure(old: Database, address: str) -> str:
    """The structure of a database as SQL; its rows are not read. Raises ``ConfigError`` with the program's words."""
    found = addressed(address, old.kind, "the old schema", _REMEDY)
    name, port, login = (
        found.database,
        str(found.port),
        ["-U" if old.kind == "postgresql" else "-u", found.user],
    )
    login = login if found.user else []
    if found.kind == "postgresql":
        program = str(postgres_installation() / "bin" / "pg_dump")  # newer than any server that it is for
        command = [program, "--schema-only", "--no-owner", "--no-privileges", "-h", found.host, "-p", port]
        variable = "PGPASSWORD"
    else:
        program = shutil.which("mariadb-dump") or shutil.which("mysqldump") or "mysqldump"
        command = [program, "--no-data", "--routines", "--skip-lock-tables", "-h", found.host, "-P", port]
        variable = "MYSQL_PWD"
    command += [*login, name]
    secret = {variable: found.password} if found.password else {}
    try:
        done = subprocess.run(
            command, env={**os.environ, **secret}, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise _refused(found.host, name, f"{program}: {error.strerror}") from error
    if done.returncode:
        raise _refused(found.host, name, done.stderr.strip())
    return done.stdout


def _refused(host: str, name: str, cause: str) -> ConfigError:
    return ConfigError(
        "the structure of the old database can't be read",
        where=f"{host}, {name}",
        cause=cause,
        remedy="correct the address, or give a file (`pg_dump -s`, `mysqldump --no-data`)",
    )
