"""Rarer garbage collection (Python's search for cycles) while a log is captured."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 200_000
"""More objects made than freed since the last look; Python's own number is 700."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within it, cycles are looked for seldom, and not among the objects that were there before.

    A backlog is hundreds of thousands of small tuples on their way from the log to a segment. None is ever
    part of a cycle, all are freed as soon as they are written, and to go through them again and again took
    more time than to read the log. What does end in cycles (errors with their tracebacks) is still found.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
