"""One setting of ``migration.toml``: the type of its value, what holds without it, what it means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TYPE_NAMES: Mapping[type, str] = {
    bool: "true or false",
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
}
"""The types of values, as messages and documents name them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a section; messages, defaults and docs/settings.md come from it.

    Attributes:
        type: of its value: one of ``TYPE_NAMES``.
        meaning: what it does, in Markdown; links begin in the documents' folder.
        default: what holds where the file doesn't set it.
        in_words: that default in words, where the value itself would not say it.
        choices: the values it may have; empty where any of its type will do.
        needed: whether the file must set it.
    """

    type: type
    meaning: str
    default: Any = ""
    in_words: str = ""
    choices: tuple[str, ...] = ()
    needed: bool = False

    def fits(self, value: object) -> bool:
        """Tells whether a value of the file has the setting's type: whole numbers are numbers, NaN is none."""
        if isinstance(value, bool):
            return self.type is bool
        if self.type is float:
            return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return isinstance(value, self.type)


def needed(meaning: str, choices: tuple[str, ...] = ()) -> Setting:
    """A text that the file must set."""
    return Setting(str, meaning, choices=choices, needed=True)


def choice(meaning: str, *choices: str) -> Setting:
    """A text out of a few; the first holds where the file sets none."""
    return Setting(str, meaning, choices[0], choices=choices)
