"""Asks the source where its log ends, on a timer, so that the lag of a run is what it is now.

Nothing of the run waits for it, and nothing depends on it: what isn't answered in time is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from migrator.errors import MigratorError
from migrator.ports.source import SourceMeter
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

EVERY_S = 1.0


class LagWatch:
    """Asks once a second and leaves the answers with the progress.

    Args:
        make: makes the session; used by one thread.
        progress: of the run.
    """

    def __init__(self, make: Callable[[], SourceMeter], progress: Progress):
        self._make = make
        self._progress = progress

    def run(self, stopping: Stopping) -> None:
        """Asks until a stop is requested."""
        meter = self._make()
        try:
            while not stopping.requested():
                self.look(meter)
                stopping.wait(EVERY_S)
        finally:
            meter.close()

    def look(self, meter: SourceMeter) -> None:
        """One question, and what came of it."""
        asked_s = self._progress.clock()
        try:
            end = meter.end()
        except MigratorError as error:
            self._progress.refused(error.what)
            return
        self._progress.answered(asked_s, end)
