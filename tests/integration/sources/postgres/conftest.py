"""Fixtures of the tests on a PostgreSQL source."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.servers import Database, PostgresServer


@pytest.fixture
def reader_role(postgres: PostgresServer, old_pg: Database) -> Iterator[str]:
    """A role without any rights but to log in."""
    role = f"reader_{uuid.uuid4().hex[:8]}"
    postgres.admin.execute(f"CREATE ROLE {role} LOGIN")
    yield role
    old_pg.execute(f"DROP OWNED BY {role}")
    postgres.admin.execute(f"DROP ROLE {role}")
