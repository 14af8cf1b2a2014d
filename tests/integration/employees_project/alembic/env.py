"""Runs the revisions of the new schema, over a connection that the caller hands in or over a URL.

From Python: ``config.attributes["connection"] = connection``.
From the shell: ``alembic -x url=postgresql+psycopg://user@host/database upgrade head``.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, pool


def run(connection: Connection) -> None:
    """Run the wanted revisions in one transaction."""
    context.configure(connection=connection, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    """Choose the connection."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        run(connection)
        return
    url = context.get_x_argument(as_dictionary=True).get("url") or context.config.get_main_option(
        "sqlalchemy.url"
    )
    if not url:
        raise SystemExit("alembic needs the new database: -x url=postgresql+psycopg://user@host/database")
    if context.is_offline_mode():
        context.configure(url=url, literal_binds=True, transactional_ddl=True)
        with context.begin_transaction():
            context.run_migrations()
        return
    with create_engine(url, poolclass=pool.NullPool).connect() as opened:
        run(opened)


main()
