"""Says so while a cluster has no executor: batches wait for one then, and Spark tells only its log."""

from __future__ import annotations

from collections.abc import Callable

from migrator.run.failure import Stopping
from migrator.run.progress import Progress

NOTE = "no executor: batches wait until the Spark cluster gives one"
_LOOK_S = 2.0


def watch_executors(
    executors: Callable[[], int | None], progress: Progress, stopping: Stopping, look_s: float = _LOOK_S
) -> None:
    """Sets the progress's note while there is none, until stopped.

    Args:
        executors: how many there are now; None where that isn't known, or no matter.
        progress: gets the note.
        stopping: of the run.
        look_s: time between two looks.
    """
    noted = False
    while not stopping.wait(look_s):
        none = executors() == 0
        if none != noted:
            progress.set(note=NOTE if none else "")
        noted = none
