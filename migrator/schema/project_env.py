"""The work of a migration project's ``alembic/env.py``: it runs the revisions of the new schema.

``migrator schema upgrade`` hands over an open connection in ``config.attributes["connection"]``. From the shell:
``alembic -x url=postgresql+psycopg://user@host/database upgrade head``, and ``--sql`` prints instead of running.

PostgreSQL runs all of them in one transaction. MySQL and MariaDB end one with each statement that changes a
structure: there each revision is noted in a transaction of its own, so that a later one that fails takes nothing away
from it.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from migrator.connections.postgres.session import REVISIONS
from migrator.schema.engines import as_engine
from migrator.schema.found_tables import run_on_empty

__all__ = ["run", "run_on_empty"]


def run() -> None:
    """Runs the wanted revisions. Ends the process with a message when no database is named."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        _upgrade(connection)
        return
    url = context.get_x_argument(as_dictionary=True).get("url") or context.config.get_main_option(
        "sqlalchemy.url"
    )
    if not url:
        raise SystemExit("alembic needs the new database: -x url=postgresql+psycopg://user@host/database")
    if context.is_offline_mode():
        context.configure(url=url, literal_binds=True)
        _migrate()
        return
    with as_engine(url, REVISIONS).connect() as opened:
        _upgrade(opened)


def _upgrade(connection: Connection) -> None:
    context.configure(connection=connection)
    _migrate()


def _migrate() -> None:
    with context.begin_transaction():
        context.run_migrations()
