"""The work of a migration project's ``alembic/env.py``: it runs the revisions of the new schema.

``migrator`` hands over an open connection in ``config.attributes["connection"]``. From the shell:
``alembic -x url=postgresql+psycopg://user@host/database upgrade head``, and ``--sql`` prints instead of running.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from migrator.connections.postgres.session import REVISIONS
from migrator.schema.engines import as_engine


def run() -> None:
    """Runs the wanted revisions in one transaction. Ends the process with a message when no database is named."""
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
        context.configure(url=url, literal_binds=True, transactional_ddl=True)
        _migrate()
        return
    with as_engine(url, REVISIONS).connect() as opened:
        _upgrade(opened)


def _upgrade(connection: Connection) -> None:
    context.configure(connection=connection, transactional_ddl=True)
    _migrate()


def _migrate() -> None:
    with context.begin_transaction():
        context.run_migrations()
