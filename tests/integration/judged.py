"""A test's database as the judge takes it."""

from __future__ import annotations

from tests.servers import Database, server_of
from verify.settings import ServerSettings


def settings_of(database: Database) -> ServerSettings:
    """With the test's own login, and no TLS."""
    return ServerSettings(server_of(database, tls="disable"))
