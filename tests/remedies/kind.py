"""One kind of remedy, and how a remedy is told to be of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.remedies.texts import Remedy


@dataclass(frozen=True)
class Kind:
    """One kind of remedy.

    Attributes:
        name: what is to be done, in a few words.
        pattern: is found in each text of this kind, and in none that an earlier kind doesn't have.
        followed: tests that do as such a remedy says, ``file::test`` below ``tests/``; none where nobody does
            so yet.
        where: how the place begins, where the words alone don't tell.
    """

    name: str
    pattern: str
    followed: tuple[str, ...] = ()
    where: str = ""

    def covers(self, remedy: Remedy) -> bool:
        """Tells whether a remedy is of this kind, if it is of none before it."""
        return remedy.place.startswith(self.where) and re.search(self.pattern, remedy.text) is not None
