"""Run by Alembic: revisions of the control tables on the connection that ``migrator.schema.control`` hands over."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema=context.config.attributes["control_schema"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
