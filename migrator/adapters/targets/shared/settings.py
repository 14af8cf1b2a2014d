"""Checks of the settings that every target has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from migrator.errors import ConfigError
from migrator.model.server import TLS_MODES, Server

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
        """Name of the migration, key of its row in the ledger."""
        ...

    @property
    def reason(self) -> str:
        """Reason that an operator gave for what the process does."""
        ...

    @property
    def lock_wait_s(self) -> int:
        """Seconds that a statement may wait for a lock."""
        ...

    @property
    def server(self) -> Server:
        """The server and the login. A statement may go unanswered for its ``silence_s`` before we ask, over another
        connection, whether the server still works on it."""
        ...


def check_settings(settings: CommonSettings, more: Sequence[Problem]) -> None:
    """Raises ``ConfigError`` naming the first setting that no server could accept. ``more``: the engine's own."""
    name, wait, silence = settings.migration, settings.lock_wait_s, settings.server.silence_s
    problems = [
        Problem(not _MIGRATION_NAME.fullmatch(name), "migration", name, _MIGRATION_NAME.pattern),
        Problem(settings.server.tls not in TLS_MODES, "tls", settings.server.tls, " | ".join(TLS_MODES)),
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
