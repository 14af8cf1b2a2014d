"""The fences of both sides are those of their engines, with the login that may raise them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from migrator.adapters.fences.postgres.fence import PostgresFence
from migrator.config.project import Settings
from migrator.model.server import Server
from migrator.wiring import fences


def test_each_side_has_the_fence_of_its_engine() -> None:
    server = Server("postgresql", "h", 5432, "d", "u", schema="public")
    settings = cast(Settings, SimpleNamespace(source=server, target=server, name="shop"))
    admin = Server("postgresql", "elsewhere", 1, "other", "admin", "secret")
    assert isinstance(fences.source_fence(settings, admin), PostgresFence)
    assert isinstance(fences.target_fence(settings), PostgresFence)
