"""The differences between the two engines in how they write or print rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's ways.

    Attributes:
        character: types that have an entry among the character sets of a TABLE_MAP event.
        double_text: a DOUBLE as a SELECT prints it.
        collations: the view of information_schema with ``ID`` and ``CHARACTER_SET_NAME`` of every collation.
        mariadb: whether it is MariaDB, which reads executable comments otherwise.
        hidden: pattern of the names of columns that the server keeps for itself, and logs; the catalog has none.
    """

    character: frozenset[int]
    double_text: Callable[[float], str]
    collations: str
    mariadb: bool = False
    hidden: str = ""
