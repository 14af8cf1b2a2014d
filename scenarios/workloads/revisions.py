"""What the ``alembic/env.py`` of every workload does: runs the revisions of the new schema."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, pool


def run() -> None:
    """Over the connection that the caller hands in, or over ``-x url=postgresql+psycopg://user@host/database``."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        _upgrade(connection)
        return
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not url:
        raise SystemExit("alembic needs the new database: -x url=postgresql+psycopg://user@host/database")
    with create_engine(url, poolclass=pool.NullPool).connect() as opened:
        _upgrade(opened)


def _upgrade(connection: Connection) -> None:
    context.configure(connection=connection, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
