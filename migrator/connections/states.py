"""The states of a server, or of an account, in which statements are refused whatever rights the login has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefusingState:
    """A state in which a statement is refused though no right is missing and no row is to blame.

    Attributes:
        problem: of what; ``{side}`` stands for source, target or database.
        remedy: what ends it.
        retryable: whether it may pass by itself.
    """

    problem: str
    remedy: str
    retryable: bool = False

    def problem_of(self, side: str) -> str:
        """Returns the problem of the source, the target, or the database whatever it is."""
        return self.problem.format(side=side)
