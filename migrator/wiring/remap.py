"""Targets that an operator has mapped anew: joined ones from the mirror, row-wise ones by their next function."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Mapping as MappingType
from dataclasses import dataclass

from migrator.config.project import Settings
from migrator.errors import MappingError
from migrator.run.commands import remap as core
from migrator.run.steps import step_hook
from migrator.wiring import parts as wiring
from migrator.wiring.coordination import leadership, look, requests
from migrator.wiring.half_reset import refuse_half
from migrator.wiring.target import forget_filled, peek, table_bytes, target_besides
from transforms.registry import Mapping


@dataclass(frozen=True, slots=True)
class Remapped:
    """A target that is to be mapped anew.

    Attributes:
        filled: of a joined one, whether it was filled; one that wasn't is filled anyway.
        bytes: what its table takes on disk now: as much again is needed until the server has cleaned up.
        leader: the process that leads, with the mapping that it has loaded; empty if there is none.
        beside: of a row-wise one, the table that its next function fills.
    """

    filled: bool
    bytes: int
    leader: str
    beside: str = ""


def remap(
    settings: Settings,
    table: str,
    master: str | None = None,
    conf: MappingType[str, str] | None = None,
    say: Callable[[int], None] = lambda _: None,
) -> Remapped:
    """Has a joined target derived anew by the run's next batch, or a row-wise one get rows of its next function.

    ``say`` is told how many bytes a row-wise target's table takes, before anything is done.

    Raises ``MappingError`` for a table that no mapping makes, or a next function that can't be used;
    ``RequestError``.
    """
    parts = wiring.parts(settings, master, conf)
    _refuse_unknown(settings, parts.mapping, table)
    if parts.mapping[table].grain is not None and table not in parts.mapping.nexts:
        return remap_joined(settings, table)
    refuse_half(settings)
    core.check_next(parts, table)
    size, leader, step = table_bytes(settings, table), look(settings).leader, step_hook(os.environ)
    say(size)
    beside = core.ask(target_besides(settings, step), peek(settings), table, step)
    return Remapped(True, size, leader, beside)


def remap_joined(settings: Settings, table: str) -> Remapped:
    """Has a joined target derived anew by the run's next batch."""
    size, leader = table_bytes(settings, table), look(settings).leader
    return Remapped(forget_filled(settings, table), size, leader)


def abort(settings: Settings, table: str) -> str:
    """Gives up a next mapping; returns the leader that still fills its table, empty where that is dropped.

    Raises ``RequestError`` where there is none.
    """
    refuse_half(settings)
    besides = target_besides(settings, step_hook(os.environ))
    store = requests(settings)
    dropped = core.abort(besides, lambda: peek(settings), store, leadership(settings), table)
    return "" if dropped else look(settings).leader or "a process that ended meanwhile"


def _refuse_unknown(settings: Settings, mapping: Mapping, table: str) -> None:
    known = [target.name for target in mapping.targets]
    if table not in known:
        raise MappingError(
            f"no mapping makes the target table {table!r}",
            where=str(settings.mapping),
            cause=f"there are: {', '.join(known) or 'none'}",
            remedy="name one of them",
        )
