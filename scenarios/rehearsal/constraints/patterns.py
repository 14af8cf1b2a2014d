"""Texts that match a regular expression of a CHECK constraint, drawn under a seed. Pure."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Sequence

_CLASSES = {
    "alpha": string.ascii_letters, "digit": string.digits, "alnum": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase, "lower": string.ascii_lowercase, "space": " ", "blank": " ",
    "xdigit": string.hexdigits, "punct": "-_.,",
}  # fmt: skip
_ESCAPES = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " "}
_ANY = string.ascii_letters + string.digits + " -_.@"
_POSIX = re.compile(r"\[:(\w+):\]")
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_MORE = 6
"""Repetitions beyond the least, where a pattern names no most."""


class _Unreadable(Exception):
    pass


def python_pattern(pattern: str) -> str:
    """The pattern as Python's ``re`` reads it: without the classes that only POSIX has."""
    return _POSIX.sub(lambda found: re.escape(_CLASSES.get(found[1], "")), pattern)


def of_like(pattern: str) -> str:
    """The regular expression that says what a pattern of LIKE says."""
    signs = {"%": ".*", "_": "."}
    return f"^{''.join(signs.get(one) or re.escape(one) for one in pattern)}$"


def drawn_from(pattern: str, dice: random.Random) -> str | None:
    """A text that matches the pattern; None for a pattern that can't be read."""
    try:
        maker = _Maker(python_pattern(pattern), dice)
        text = maker.whole()
        return text if re.search(python_pattern(pattern), text) else None
    except (_Unreadable, re.error, IndexError, RecursionError):
        return None


class _Maker:
    """Reads a pattern and draws, in one go: alternatives and repetitions are drawn from their readings."""

    def __init__(self, pattern: str, dice: random.Random):
        self._pattern, self._dice, self._place = pattern, dice, 0

    def whole(self) -> str:
        text = self._alternatives()
        if self._place < len(self._pattern):
            raise _Unreadable
        return text

    def _peek(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _alternatives(self) -> str:
        found = [self._sequence()]
        while self._peek() == "|":
            self._place += 1
            found.append(self._sequence())
        return self._dice.choice(found)

    def _sequence(self) -> str:
        found = list[str]()
        while (sign := self._peek()) and sign not in "|)":
            if sign in "^$":
                self._place += 1
                continue
            begin = self._place
            drawn = self._atom()
            end = self._place
            least, most = self._counts()
            times = self._dice.randint(least, most)
            further = [self._again(begin, end) for _ in range(times - 1)]
            found += [drawn, *further] if times else []
        return "".join(found)

    def _again(self, begin: int, end: int) -> str:
        """Another draw of the part of the pattern from ``begin`` to ``end``."""
        place, self._place = self._place, begin
        drawn = self._atom()
        assert self._place == end
        self._place = place
        return drawn

    def _counts(self) -> tuple[int, int]:
        sign = self._peek()
        if sign in ("*", "+", "?") and sign:
            self._place += 1
            found = {"*": (0, _MORE), "+": (1, _MORE), "?": (0, 1)}[sign]
        elif counted := _COUNT.match(self._pattern, self._place):
            self._place = counted.end()
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3] or least + _MORE)
            found = (least, max(most, least))
        else:
            return 1, 1
        if self._peek() == "?":
            self._place += 1
        return found

    def _atom(self) -> str:
        sign = self._pattern[self._place]
        self._place += 1
        if sign == "(":
            if self._pattern.startswith("?:", self._place):
                self._place += 2
            elif self._peek() == "?":
                raise _Unreadable
            text = self._alternatives()
            if self._peek() != ")":
                raise _Unreadable
            self._place += 1
            return text
        if sign == "[":
            return self._dice.choice(self._class())
        if sign == ".":
            return self._dice.choice(_ANY)
        if sign == "\\":
            return self._dice.choice(self._escaped())
        return sign

    def _escaped(self) -> Sequence[str]:
        sign = self._pattern[self._place]
        self._place += 1
        if sign in _ESCAPES:
            return _ESCAPES[sign]
        if sign.isalnum():
            raise _Unreadable
        return sign

    def _class(self) -> Sequence[str]:
        denied = self._peek() == "^"
        self._place += denied
        found = list[str]()
        while self._peek() != "]" or not found:
            sign = self._pattern[self._place]
            self._place += 1
            if sign == "\\":
                found += self._escaped()
            elif self._peek() == "-" and self._pattern[self._place + 1] != "]":
                last = self._pattern[self._place + 1]
                self._place += 2
                found += map(chr, range(ord(sign), ord(last) + 1))
            else:
                found.append(sign)
        self._place += 1
        return [one for one in _ANY if one not in found] if denied else found
