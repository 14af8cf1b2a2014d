"""Watchers of a run that no fault of theirs ends: they begin again, and an operator is told.

The run doesn't depend on them. One that ended in silence would leave a page and metrics on which nothing moves, and
that look as if nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable

from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_REST_S = 5.0


def unbroken(
    name: str, work: Callable[[], None], progress: Progress, stopping: Stopping
) -> Callable[[], None]:
    """The work, begun again some seconds after any error until a stop is requested; the last error is a warning."""

    def begun_again() -> None:
        while not stopping.requested():
            try:
                return work()
            except Exception as error:  # a fault of ours: named errors are answers to a watcher
                said = f"{type(error).__name__}: {error}"
                progress.warn(
                    f"watching {name}",
                    f"the {name} isn't watched for {_REST_S:g} s and more, by a fault of the tool ({said}): the run"
                    " goes on; what pages and metrics tell of it may be old. Please report it",
                )
            stopping.wait(_REST_S)
        return None

    return begun_again
