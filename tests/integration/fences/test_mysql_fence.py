"""The fences on MySQL and MariaDB keep the contract of fences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.fences.fence_contract import FenceContract, KilledFenceContract
from tests.integration.fences.mysql_place import MysqlPlace
from tests.servers import Database

pytestmark = pytest.mark.integration


class _OnMysql:
    @pytest.fixture
    def place(self, old_mysql: Database) -> Iterator[MysqlPlace]:
        made = MysqlPlace(old_mysql)
        yield made
        made.drop()


class _OnMariaDB:
    @pytest.fixture
    def place(self, old_maria: Database) -> Iterator[MysqlPlace]:
        made = MysqlPlace(old_maria)
        yield made
        made.drop()


class TestMysqlFence(_OnMysql, FenceContract):
    """MySQL."""


class TestMariaFence(_OnMariaDB, FenceContract):
    """MariaDB."""


@pytest.mark.slow
class TestMysqlFenceKilled(_OnMysql, KilledFenceContract):
    """MySQL."""


@pytest.mark.slow
class TestMariaFenceKilled(_OnMariaDB, KilledFenceContract):
    """MariaDB."""
