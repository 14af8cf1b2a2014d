"""The search for those of many that make a job fail: each of them fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def failing(
    groups: Sequence[Sequence[Item]], fails: Callable[[Sequence[Item]], str | None], most: int
) -> list[tuple[Item, str]]:
    """The items that fail alone, and why; no more are looked for once ``most`` and one more are found.

    A group that fails is halved, so ``k`` of ``n`` items cost about ``2 k log2(n / k)`` tries, and two for each where
    all of them fail. Items that fail together alone are not found.

    Args:
        groups: the items; those that failed before are best in a group of their own.
        fails: tries some items; the cause if they fail.
        most: how many may be found.
    """
    found: list[tuple[Item, str]] = []
    waiting = [group for group in reversed(groups) if group]
    while waiting and len(found) <= most:
        items = waiting.pop()
        cause = fails(items)
        if cause is None:
            continue
        if len(items) == 1:
            found.append((items[0], cause))
            continue
        half = len(items) // 2
        waiting += [items[half:], items[:half]]
    return found
