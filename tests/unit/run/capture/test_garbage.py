"""While a log is captured, the collector of cycles leaves a backlog alone, and still does its work."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from migrator.run.capture.loop import NEW_OBJECTS, seldom_collected


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generation of each collection."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def backlog() -> list[list[int]]:
    return [[number] for number in range(50_000)]


def test_a_backlog_is_not_gone_through_again_and_again() -> None:
    before = gc.get_threshold()
    with collections() as control:
        kept = backlog()
    with seldom_collected(), collections() as found:
        kept += backlog()
    assert len(found) <= 1 < len(control)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_are_freed_all_the_same() -> None:
    class Node:
        own: Node

    with seldom_collected():
        node = Node()
        node.own = node
        gone = weakref.ref(node)
        del node
        kept = [[number] for number in range(2 * NEW_OBJECTS)]
    assert gone() is None
    assert len(kept) == 2 * NEW_OBJECTS
