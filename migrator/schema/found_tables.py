"""The tables that a new database had before its revisions, from a dump of its structure, for an empty database."""

from __future__ import annotations

import re
from pathlib import Path

from alembic import op
from sqlalchemy import Connection, text

from migrator.errors import ConfigError
from migrator.schema.dialects import DIALECTS
from migrator.schema.sql_text import Statement, script

_NOT_HERE = re.compile(
    r"SELECT pg_catalog\.set_config\('search_path'|SET (statement_timeout|lock_timeout|transaction_timeout|"
    r"idle_in_transaction_session_timeout|client_encoding)\b|ALTER .* OWNER TO |CREATE EXTENSION .* plpgsql\b",
    re.DOTALL,
)
"""Statements of pg_dump that are for a session of its own: Alembic goes on in this one, as the owner."""
_SCHEMA = re.compile(r"CREATE SCHEMA (?!IF NOT EXISTS)")


def run_on_empty(file: Path) -> None:
    """Runs a dump of the new structure where the revisions' database has no table; does nothing where it has one.

    So the revision that stands for tables which were there before makes them on throw-away servers, and changes
    nothing elsewhere. Written as SQL it is empty.

    Args:
        file: the dump: ``pg_dump -s --no-owner --no-privileges``, ``mysqldump --no-data --routines``.

    Raises ``ConfigError`` for an empty database without the file, and for a file that can't be read.
    """
    if op.get_context().as_sql:
        return
    connection = op.get_bind()
    dialect = DIALECTS[connection.dialect.name]
    if connection.execute(text(dialect.any_table)).first():
        return
    if not file.is_file():
        raise ConfigError(
            "the new schema isn't written down, and this database has no table",
            where=str(file),
            cause="there is no such file: the project was begun from tables that were there",
            remedy=f"write it where they are: {dialect.dump} NEW > {file.name}, in {file.parent}",
        )
    for one in script(file.read_text(), connection.dialect.name, str(file)).statements:
        _run(connection, one, file)


def _run(connection: Connection, one: Statement, file: Path) -> None:
    bare = one.text.strip()
    if _NOT_HERE.match(bare):
        return
    if one.rows is not None:
        raise ConfigError(
            "the dump of the new schema has rows",
            where=f"{file}, line {one.line}",
            cause="the migration fills the new tables itself",
            remedy="write the structure alone: pg_dump -s",
        )
    statement = _SCHEMA.sub("CREATE SCHEMA IF NOT EXISTS ", bare, count=1) if _SCHEMA.match(bare) else bare
    cursor = connection.connection.cursor()  # the driver's own: a % in a default is no parameter
    try:
        cursor.execute(statement)
    finally:
        cursor.close()
