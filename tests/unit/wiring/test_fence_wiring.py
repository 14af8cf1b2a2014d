"""The fences of both sides are those of their engines, with the login that may raise them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from migrator.adapters.fences.mariadb.fence import MariaFence
from migrator.adapters.fences.mysql.fence import MysqlFence
from migrator.adapters.fences.postgres.fence import PostgresFence
from migrator.adapters.fences.shared.kept_fence import KeptFence
from migrator.config.engines import ENGINES
from migrator.config.project import Settings
from migrator.model.server import Server
from migrator.wiring import fences

FENCES = {"postgresql": PostgresFence, "mariadb": MariaFence, "mysql": MysqlFence}


@pytest.mark.parametrize("kind", ENGINES)
def test_each_side_has_the_fence_of_its_engine(kind: str) -> None:
    server = Server(kind, "h", 5432, "d", "u", schema="public")
    settings = cast(Settings, SimpleNamespace(source=server, target=server, name="shop"))
    admin = Server(kind, "elsewhere", 1, "other", "admin", "secret")
    source, target = fences.source_fence(settings, admin), fences.target_fence(settings)
    assert type(source) is type(target) is FENCES[kind]
    assert isinstance(source, KeptFence)
    assert isinstance(target, KeptFence)
    assert source._side.server.address == "admin@h:5432/d"
    assert source._side.name() != target._side.name()
