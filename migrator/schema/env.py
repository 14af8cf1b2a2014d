"""Run by Alembic: revisions of the control tables on the connection that ``migrator.schema.control`` hands over."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    **context.config.attributes["place"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
