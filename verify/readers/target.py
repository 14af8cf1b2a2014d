"""The reader of a target, by the target's kind."""

from __future__ import annotations

from verify.readers.mysql.target import MySQLTarget
from verify.readers.postgres.target import PostgresTarget
from verify.settings import ServerSettings


def target_reader(settings: ServerSettings, migration: str) -> PostgresTarget | MySQLTarget:
    """The reader for the kind of the target."""
    return (PostgresTarget if settings.server.kind == "postgresql" else MySQLTarget)(settings, migration)
