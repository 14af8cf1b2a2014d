"""The fences of a migration's two sides: the adapters that its settings choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from migrator.adapters.fences.mariadb.fence import MariaFence
from migrator.adapters.fences.mysql.fence import MysqlFence
from migrator.adapters.fences.postgres.fence import PostgresFence
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.config.project import Settings
from migrator.model.server import Server
from migrator.ports.fence import Fence
from migrator.run.steps import Step, no_step

_ENGINES: Mapping[str, Callable[[Side, Step], Fence]] = {
    "postgresql": PostgresFence,
    "mysql": MysqlFence,
    "mariadb": MariaFence,
}


def source_fence(settings: Settings, login: Server | None = None, step: Step = no_step) -> Fence:
    """Returns the fence of the old side. Connects to nothing yet.

    Args:
        settings: the project's configuration.
        login: who raises the fence; the migration's own login where it is None, which rarely has the rights.
        step: hook at the points ``fence.noting`` to ``fence.opened``.
    """
    return _fence(settings.source, login, settings.name, "source", step)


def target_fence(settings: Settings, login: Server | None = None, step: Step = no_step) -> Fence:
    """Returns the fence of the new side. Connects to nothing yet."""
    return _fence(settings.target, login, settings.name, "target", step)


def _fence(server: Server, login: Server | None, migration: str, side: str, step: Step) -> Fence:
    who = login or server
    there = replace(server, user=who.user, password=who.password)
    return _ENGINES[server.kind](Side(there, migration, side), step)
