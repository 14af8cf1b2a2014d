"""Every kind of server that a project's file may name has its adapters."""

from __future__ import annotations

from migrator.config.engines import ENGINES
from migrator.wiring.source_engines import SOURCE_ENGINES
from migrator.wiring.target_engines import TARGET_ENGINES


def test_every_kind_of_source_has_its_adapters() -> None:
    assert tuple(SOURCE_ENGINES) == tuple(ENGINES)


def test_every_kind_of_target_has_its_adapters() -> None:
    assert tuple(TARGET_ENGINES) == tuple(ENGINES)
