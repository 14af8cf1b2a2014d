"""Joined targets that an operator has derived anew."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.config.project import Settings
from migrator.errors import MappingError
from migrator.wiring.coordination import look
from migrator.wiring.parts import mapping
from migrator.wiring.target import forget_filled, table_bytes


@dataclass(frozen=True, slots=True)
class Remapped:
    """A joined target that is to be derived anew.

    Attributes:
        filled: whether it was filled; one that wasn't is filled anyway.
        bytes: what its table takes on disk now: as much again is needed until the server has cleaned up.
        leader: the process that leads, with the mapping that it has loaded; empty if there is none.
    """

    filled: bool
    bytes: int
    leader: str


def remap(settings: Settings, table: str) -> Remapped:
    """Has a joined target derived anew by the run's next batch.

    Raises ``MappingError`` for a table that no joined mapping makes.
    """
    known = [target.name for target in mapping(settings) if target.grain is not None]
    if table not in known:
        raise MappingError(
            f"no joined mapping makes the target table {table!r}",
            where=str(settings.mapping),
            cause=f"with grain= there are: {', '.join(known) or 'none'}",
            remedy="rows of a row-wise target come again with `migrator dump start --table <source table>`",
        )
    size, leader = table_bytes(settings, table), look(settings).leader
    return Remapped(forget_filled(settings, table), size, leader)
