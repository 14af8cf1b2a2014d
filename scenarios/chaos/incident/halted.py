"""The named error with which a project's last run stopped, as that run left it behind."""

from __future__ import annotations

from pathlib import Path

from migrator.adapters.coordination.local.hints import FileHints
from migrator.config.project import Settings
from migrator.errors import (
    BesideError,
    ConnectionFailed,
    FencedError,
    MappingError,
    MappingErrors,
    RowRefused,
    RowUnmapped,
    SourceError,
    TargetError,
)
from migrator.model.observed.observation import Ended
from migrator.wiring.coordination import hints_for_once

_OF_THE_MOMENT = frozenset({ConnectionFailed.__name__, FencedError.__name__})
"""Errors that say nothing of rows: a server that was away, another process that leads."""
_OF_ROWS = frozenset(
    one.__name__
    for one in (BesideError, MappingError, MappingErrors, RowRefused, RowUnmapped, SourceError, TargetError)
)


def last_error(settings: Settings | None, state: Path) -> Ended | None:
    """The error with which the last run stopped; None where it didn't, goes on, or met what is over by itself.

    Args:
        settings: of the project; None where they can't be used: then only the state folder is looked into.
        state: the project's state folder.

    Raises ``MigratorError`` where the run's note can't be read.
    """
    if settings is None:
        hint = FileHints(state).read()
    else:
        with hints_for_once(settings) as place:
            hint = place.read()
    ended = None if hint is None else hint.ended
    return None if ended is None or not ended.error or ended.error in _OF_THE_MOMENT else ended


def of_rows(error: str) -> bool:
    """Tells whether old rows and their changes are enough for an error to come back; unknown ones count."""
    return not error or error in _OF_ROWS
