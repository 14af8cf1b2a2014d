"""One place where a failed thread leaves its error, and through which all threads learn to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stopping:
    """Stop flag of a run, with the first error if one was the reason.

    The error is raised again in the main thread, so that a failure in a background thread can't be lost.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._attempt: Stopping | None = None

    def attempt(self) -> Stopping:
        """The flag of one attempt among several: a request stops it too, its own failure ends nothing else."""
        self._attempt = attempt = Stopping()
        if self._event.is_set():  # requested before the attempt was there to be told
            attempt.request()
        return attempt

    def request(self) -> None:
        """Asks every loop to stop after what it is doing. Takes no lock: signal handlers call it."""
        self._event.set()
        if self._attempt is not None:
            self._attempt.request()

    def requested(self) -> bool:
        """Tells whether a stop was requested."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Waits until a stop is requested, at most ``timeout_s``; whether it is."""
        return self._event.wait(timeout_s)

    def failed(self, error: BaseException) -> None:
        """A thread ended with an error: keep the first one, stop the others."""
        with self._lock:
            self._error = self._error or error
        self._event.set()

    def has_failed(self) -> bool:
        """Tells whether an error was the reason of the stop."""
        with self._lock:
            return self._error is not None

    def raise_failure(self) -> None:
        """Raises the error that stopped the run, if one did."""
        if self._error is not None:
            raise self._error

    def thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """A started thread whose error stops the run."""

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # handed to the main thread, which raises it
                self.failed(error)

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread
