"""A test's database as the judge takes it."""

from __future__ import annotations

from tests.servers import Database
from verify.settings import ServerSettings


def settings_of(database: Database) -> ServerSettings:
    """With the test's own login, and no TLS."""
    login = (database.host, database.port, database.database, database.user, database.password)
    return ServerSettings(database.kind, *login, tls="disable")
