"""The hazards, each the same for every tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from migrator.errors import MigratorError
from scenarios.torture.old_table import INSERT, MOVE, OWN_UPDATE, REMOVE, Writing


@dataclass(frozen=True, slots=True)
class Hazard:
    """One hazard: what the writers and the server do while a table is read beside the log.

    Attributes:
        name: for the command line.
        title: in one sentence.
        catalogue: numbers of the fault catalogue.
        writing: the writers.
        standby: none; ``distant``: every commit waits ``standby_ms`` for a synchronous standby; ``ghost``: commits
            wait for a standby that doesn't exist, and go on only after the table was read.
        standby_ms: how far the distant standby is away.
        capture_role: settings of the role that the tools log in as.
        read_only: Debezium reads in its mode without writes to the source.
    """

    name: str
    title: str
    catalogue: tuple[int, ...] = (44,)
    writing: Writing = field(default_factory=Writing)
    standby: Literal["", "distant", "ghost"] = ""
    standby_ms: int = 0
    capture_role: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False


_MOVES = Writing({OWN_UPDATE: 4, MOVE: 2, REMOVE: 2, INSERT: 2}, rate_per_s=1500)
_PATIENT = Writing(clients=32, rate_per_s=600)
_LOCAL = {"synchronous_commit": "local"}

HAZARDS: tuple[Hazard, ...] = (
    Hazard("hot_keys", "16 clients update 200 hot keys, 1,000 times a second; default settings"),
    Hazard(
        "hot_keys_fast",
        "the same, 4,000 times a second",
        writing=Writing(rate_per_s=4000),
    ),
    Hazard(
        "key_moves",
        "keys are moved, deleted and inserted again, 1,500 times a second; default settings",
        catalogue=(36, 38),
        writing=_MOVES,
    ),
    Hazard(
        "distant_standby",
        "every commit waits 20 ms for a synchronous standby; default settings",
        catalogue=(40,),
        writing=_PATIENT,
        standby="distant",
        standby_ms=20,
    ),
    Hazard(
        "distant_standby_local",
        "the same; the capturing role doesn't wait for the standby (synchronous_commit=local)",
        catalogue=(40,),
        writing=_PATIENT,
        standby="distant",
        standby_ms=20,
        capture_role=_LOCAL,
    ),
    Hazard(
        "ghost_standby",
        "8 commits at a time wait for a standby that is gone; the capturing role doesn't wait for it",
        catalogue=(40,),
        standby="ghost",
        capture_role=_LOCAL,
    ),
    Hazard(
        "read_only",
        "hot keys as above, Debezium with read-only incremental snapshots",
        read_only=True,
    ),
)


def chosen(name: str) -> tuple[Hazard, ...]:
    """The hazard of that name, or all of them for ``all``. Raises MigratorError for an unknown one."""
    found = tuple(hazard for hazard in HAZARDS if name in ("all", hazard.name))
    if not found:
        raise MigratorError(
            f"there is no hazard {name!r}",
            remedy=f"choose all, {', '.join(hazard.name for hazard in HAZARDS)}",
        )
    return found
