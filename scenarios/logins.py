"""Logins that may do exactly what ``migrator grants`` prints, made by running what it prints."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrator import schema as control
from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.model.grants import Grants
from migrator.wiring import parts as wiring
from migrator.wiring.source import source_database
from scenarios.database import Database
from scenarios.faults.session import execute, query
from scenarios.toml_text import merged, toml_text

_PASSWORD_FILE = "password"


def give_own_login(config: Path, old: Database, new: Database, more: Sequence[str] = ()) -> None:
    """Has a project, whose new schema is there, log in on both sides with a login of its own, made for it.

    Args:
        config: the project's ``migration.toml``, rewritten; it logs in as an administrator until then.
        old, new, more: see ``make_logins``.
    """
    login, password = f"pipeline_{secrets.token_hex(4)}", secrets.token_hex(16)
    admin = configuration.load(config)
    own = replace(
        admin,
        source=replace(admin.source, user=login, password=password),
        target=replace(admin.target, user=login, password=password),
    )
    make_logins(own, old, new, password, more)
    (config.parent / _PASSWORD_FILE).write_text(password)
    section = {"user": login, "password_file": _PASSWORD_FILE}
    document = merged(tomllib.loads(config.read_text()), {"source": section, "target": section})
    config.write_text(toml_text(document))


def make_logins(
    settings: configuration.Settings, old: Database, new: Database, password: str, more: Sequence[str] = ()
) -> None:
    """Makes both logins, the target's schema being there.

    Args:
        settings: of the project, with the logins to make.
        old: the source, as an administrator.
        new: the target, as an administrator.
        password: of both.
        more: words of statements that are printed as comments, for cases that the configuration doesn't tell: those
            that contain one of these words are run as well.

    Raises ``MigratorError`` for a statement that a server refuses, and a word that no comment has.
    """
    if settings.placement == "watermark":  # its table is an administrator's
        owner = replace(settings.source, user=old.user, password=old.password)
        control.upgrade_source(source_database(replace(settings, source=owner)))
    scripts = wiring.grants(settings)
    for word in more:
        if not any(word in statement for script in scripts for statement, _ in script.perhaps):
            raise MigratorError(f"`migrator grants` prints nothing with {word!r}", where="grants")
    for database, script in zip((old, new), scripts, strict=True):
        _shut(database)
        _run(database, script, password, more)


def _shut(database: Database) -> None:
    """Takes from everybody what PostgreSQL gives to everybody: it would make up for a right that isn't printed."""
    if database.kind == "postgresql":
        name = database.database.replace('"', '""')
        public = ["REVOKE ALL ON SCHEMA public FROM PUBLIC", f'REVOKE ALL ON DATABASE "{name}" FROM PUBLIC']
        execute(database, public)


def _run(database: Database, script: Grants, password: str, more: Sequence[str]) -> None:
    wanted = [statement for statement, _ in script.perhaps if any(word in statement for word in more)]
    execute(database, [script.make.rstrip(";").replace("'...'", f"'{password}'"), *script.needed, *wanted])
    for statement, _ in script.perhaps:
        if statement.startswith("SELECT"):  # it prints further statements
            execute(database, [str(row[0]).rstrip(";") for row in query(database, statement)])
