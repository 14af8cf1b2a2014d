"""Checks of the settings that every target has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from migrator.errors import ConfigError

_MIGRATION_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


class Problem(NamedTuple):
    """A setting that may be wrong: ``wrong`` tells; its name, its value, and what is allowed in words."""

    wrong: bool
    name: str
    value: object
    allowed: str


class CommonSettings(Protocol):
    """A target's settings, as far as all engines have them."""

    @property
    def migration(self) -> str:
        """Name of the migration."""
        ...

    @property
    def lock_wait_s(self) -> int:
        """Seconds that a statement may wait for a lock."""
        ...

    @property
    def silence_s(self) -> float:
        """Seconds that a statement may go unanswered."""
        ...


def check_settings(settings: CommonSettings, more: Sequence[Problem]) -> None:
    """Raises ``ConfigError`` naming the first setting that no server could accept. ``more``: the engine's own."""
    name, wait, silence = settings.migration, settings.lock_wait_s, settings.silence_s
    problems = [
        Problem(not _MIGRATION_NAME.fullmatch(name), "migration", name, _MIGRATION_NAME.pattern),
        *more,
        Problem(wait < 1, "lock_wait_s", wait, "at least 1"),
        Problem(silence <= 0, "silence_s", silence, "more than 0"),
    ]
    for problem in problems:
        if problem.wrong:
            raise ConfigError(
                f"target setting {problem.name} is {problem.value!r}",
                where=problem.name,
                remedy=f"allowed: {problem.allowed}",
            )
