"""Mappings that are planned when they are first needed, or before that by a thread of their own.

To plan twenty-five joined mappings takes a JVM that has just started half a minute. The first batches need few of
them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.errors import MigratorError

PlannedT = TypeVar("PlannedT")
_REST_S = 2.0
"""Seconds of rest: a batch's mapping takes a core, and a JVM that has just started compiles on the other."""


class PlannedAhead(Mapping[str, PlannedT]):
    """Planned mappings by target table, in a fixed order; whoever asks for one waits until it is planned.

    Who asks goes before what is planned ahead: the first batch after a start waits for its own targets only.

    Args:
        plan: makes one. It is called once for a target, by one thread at a time; where it fails, the next who asks
            tries again.
        names: the target tables.
        rest_s: the time in which nobody has asked for one that isn't planned, before another is planned ahead.
    """

    def __init__(self, plan: Callable[[str], PlannedT], names: tuple[str, ...], rest_s: float = _REST_S):
        self._plan = plan
        self._names = names
        self._rest_s = rest_s
        self._planned: dict[str, PlannedT] = {}
        self._planning = threading.Lock()
        self._asked = threading.Condition()
        self._asking, self._asked_s = 0, 0.0
        self._ended = False
        self._thread: threading.Thread | None = None

    def __getitem__(self, name: str) -> PlannedT:
        if name not in self._names:
            raise KeyError(name)
        if name in self._planned:
            return self._planned[name]
        if threading.current_thread() is self._thread:
            return self._get(name)
        self._ask(1)
        try:
            return self._get(name)
        finally:
            self._ask(-1)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def begin(self, also: Callable[[str], object]) -> None:
        """Begins to plan those that nobody has asked for yet, beside the caller; ``also`` asks for one.

        What fails here fails once more where it is needed, and is named there.
        """
        self._asked_s = time.monotonic()
        self._thread = threading.Thread(target=self._go_through, args=(also,), name="plan-ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; waits for the mapping that it is planning."""
        with self._asked:
            self._ended = True
            self._asked.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _get(self, name: str) -> PlannedT:
        with self._planning:
            if name not in self._planned:
                self._planned[name] = self._plan(name)
            return self._planned[name]

    def _ask(self, more: int) -> None:
        with self._asked:
            self._asking += more
            self._asked_s = time.monotonic()
            self._asked.notify_all()

    def _go_through(self, also: Callable[[str], object]) -> None:
        for name in self._names:
            if not self._may_go_on():
                return
            with suppress(MigratorError, Py4JError, PySparkException, OSError):
                also(name)

    def _may_go_on(self) -> bool:
        """Waits until nobody asks, and has asked for a while; False: it is closed."""
        with self._asked:
            while not self._ended:
                left_s = self._asked_s + self._rest_s - time.monotonic()
                if not self._asking and left_s <= 0:
                    return True
                self._asked.wait(None if self._asking else left_s)
            return False
