"""Mappings that are planned when they are first needed, or before that by a thread of their own.

To plan twenty-five joined mappings takes a JVM that has just started half a minute. The first batches need few of
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.errors import MigratorError

PlannedT = TypeVar("PlannedT")


class PlannedAhead(Mapping[str, PlannedT]):
    """Planned mappings by target table, in a fixed order; whoever asks for one waits until it is planned.

    Args:
        plan: makes one. It is called once for a target, by one thread at a time; where it fails, the next who asks
            tries again.
        names: the target tables.
    """

    def __init__(self, plan: Callable[[str], PlannedT], names: tuple[str, ...]):
        self._plan = plan
        self._names = names
        self._planned: dict[str, PlannedT] = {}
        self._planning = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __getitem__(self, name: str) -> PlannedT:
        if name not in self._names:
            raise KeyError(name)
        with self._planning:
            if name not in self._planned:
                self._planned[name] = self._plan(name)
            return self._planned[name]

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
        self._thread = threading.Thread(target=self._go_through, args=(also,), name="plan-ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; waits for the mapping that it is planning."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _go_through(self, also: Callable[[str], object]) -> None:
        for name in self._names:
            if self._ended.is_set():
                return
            with suppress(MigratorError, Py4JError, PySparkException, OSError):
                also(name)
