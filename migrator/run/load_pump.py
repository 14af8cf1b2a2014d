"""The thread that looks how busy the source is, while chunks are read and a bound of its load is set."""

from __future__ import annotations

from collections.abc import Callable

from migrator.errors import MigratorError
from migrator.ports.source import LoadMeter
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.source_threads import Inputs, Sampled, hand_over

_EVERY_S = 1.0


class LoadPump:
    """Samples once a second. A source that can't be asked is told of, and asked again; the migration goes on.

    Args:
        make: the connection, made when first needed.
        inputs: where the pump hands over.
        progress: takes notes.
        wanted: whether anybody asks; while not, it holds no connection.
    """

    def __init__(
        self, make: Callable[[], LoadMeter], inputs: Inputs, progress: Progress, wanted: Callable[[], bool]
    ):
        self._make = make
        self._inputs = inputs
        self._progress = progress
        self._wanted = wanted
        self._meter: LoadMeter | None = None

    def run(self, stopping: Stopping) -> None:
        """Samples until a stop is requested."""
        try:
            while not stopping.requested():
                self.look(stopping)
                stopping.wait(_EVERY_S)
        finally:
            self._close()

    def look(self, stopping: Stopping) -> None:
        """One sample, handed over, if it is wanted."""
        if not self._wanted():
            if self._meter is not None:
                self._close()
                hand_over(self._inputs, Sampled(None), stopping)
            return
        try:
            if self._meter is None:
                self._meter = self._make()
            load = self._meter.sample()
        except MigratorError as error:
            self._close()
            self._progress.set(note=f"source load: {error.what}; asking again")
            return
        hand_over(self._inputs, Sampled(load), stopping)

    def _close(self) -> None:
        if self._meter is not None:
            self._meter.close()
        self._meter = None
