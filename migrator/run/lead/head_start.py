"""A run that finds changes in its event log lets capture go ahead of apply first.

Whoever corrects the row that stopped the last run does it at the source. The change that stopped it is in the event
log already, its correction isn't yet. Mapped together only what they come to is seen; the first alone would
stop this run like the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from migrator.errors import MigratorError
from migrator.model.position import Position
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_LONGEST_S = 10.0
"""A long log isn't waited for: what stops a run is in its first batch, what is far behind it isn't."""
_LOOK_S = 0.05


def head_start(position: Callable[[], Position], progress: Progress, stopping: Stopping) -> None:
    """Returns once capture has read what the source's log holds now, after some seconds, or when a stop is
    wanted."""
    try:
        now = position()
    except MigratorError:  # capture meets it too, and says so
        return
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        captured = progress.snapshot().captured
        if (captured is not None and captured >= now) or stopping.wait(_LOOK_S):
            return
