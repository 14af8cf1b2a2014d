"""Runs the revisions of the new schema: over which connection, ``migrator.schema.project_env`` says."""

from migrator.schema.project_env import run

run()
