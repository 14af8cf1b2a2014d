"""The thread that looks how busy the source is, while chunks are read and a bound of its load is set."""

from __future__ import annotations

from collections.abc import Callable

from migrator.errors import MigratorError
from migrator.ports.source import LoadMeter
from migrator.run.capture.inputs import Inputs, Sampled
from migrator.run.capture.source_threads import hand_over
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_AFTER_FAILURE_S = 1.0
_UNWANTED_S = 0.05
"""Seconds between two looks whether chunks are read: until it is known how busy the source is, they are read
slowly."""


class LoadPump:
    """Samples as often as is asked for. A source that can't be asked is told of, and asked again; the run goes on.

    Args:
        make: the connection, made when first needed.
        inputs: where the pump hands over.
        progress: takes notes.
        wanted: whether anybody asks; while not, it holds no connection.
        again_s: how soon after a sample the next one is wanted, in seconds.
    """

    def __init__(
        self,
        make: Callable[[], LoadMeter],
        inputs: Inputs,
        progress: Progress,
        wanted: Callable[[], bool],
        again_s: Callable[[], float],
    ):
        self._make = make
        self._inputs = inputs
        self._progress = progress
        self._wanted = wanted
        self._again_s = again_s
        self._meter: LoadMeter | None = None

    def run(self, stopping: Stopping) -> None:
        """Samples until a stop is requested."""
        try:
            while not stopping.requested():
                stopping.wait(self.look(stopping))
        finally:
            self._close()

    def look(self, stopping: Stopping) -> float:
        """One sample, handed over, if it is wanted. How long to wait before the next look, in seconds."""
        if not self._wanted():
            if self._meter is not None:
                self._close()
                hand_over(self._inputs, Sampled(None), stopping)
            return _UNWANTED_S
        try:
            if self._meter is None:
                self._meter = self._make()
            load = self._meter.sample()
        except MigratorError as error:
            self._close()
            self._progress.set(note=f"source load: {error.what}; asking again")
            return _AFTER_FAILURE_S
        hand_over(self._inputs, Sampled(load), stopping)
        return self._again_s()

    def _close(self) -> None:
        if self._meter is not None:
            self._meter.close()
        self._meter = None
