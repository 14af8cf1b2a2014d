"""Choices of one decision, taken from one number: cheap, and the same however the decisions around it change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A supply of small choices; when the number is used up, always the first choice.

    Args:
        number: 0 or more; 48 random bits serve a dozen choices.
    """

    __slots__ = ("_left",)

    def __init__(self, number: int):
        self._left = number

    def below(self, count: int) -> int:
        """One of 0 ... ``count`` - 1."""
        self._left, chosen = divmod(self._left, count)
        return chosen

    def one_of(self, choices: Sequence[T]) -> T:
        """One of the choices, of which there must be one."""
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[T], count: int) -> list[T]:
        """Picks up to ``count`` different choices, in any order."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
