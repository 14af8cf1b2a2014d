"""The fence on PostgreSQL keeps the contract of fences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.fences.fence_contract import FenceContract, KilledFenceContract
from tests.integration.fences.postgres_place import PostgresPlace
from tests.servers import Database

pytestmark = pytest.mark.integration


class TestPostgresFence(FenceContract, KilledFenceContract):
    @pytest.fixture
    def place(self, old_pg: Database) -> Iterator[PostgresPlace]:
        made = PostgresPlace(old_pg)
        yield made
        made.drop()
