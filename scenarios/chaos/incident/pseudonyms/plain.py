"""Pseudonyms of values that are no keys: texts by their form, numbers with noise, times moved, bytes by length."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from scenarios.chaos.incident.pseudonyms.dice import Dice
from scenarios.chaos.incident.pseudonyms.letters import alphabet, folded, in_case_of, speaks

_TRIALS = 200
_EXACT = Context(prec=400)
"""Digits enough for any decimal: the usual context rounds."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_WEEKS = (30, 300)
_FIRST_YEAR, _LAST_YEAR = 1000, 9000
"""Days outside these years stand for none, and stay."""
_SPANS = 60
_UNIX_YEARS = (1971, 2037)


class Texts:
    """Pseudonyms of texts, each by all of its text: what begins alike doesn't stay alike.

    Args:
        originals: all texts, none of which is to be a pseudonym.
        kept: texts that stay, wherever they stand; compared without regard to case.
        parts: texts that stay inside of others.
        dice: draws.
    """

    def __init__(self, originals: Collection[str], kept: Collection[str], parts: Collection[str], dice: Dice):
        self._originals = {_form(one) for one in originals}
        self._kept, self._dice = {_form(one) for one in kept}, dice
        words = sorted({one.strip("%_ ").lower() for one in parts}, key=lambda one: (-len(one), one))
        words = [one for one in words if len(one) >= 3 and speaks(one)]
        self._parts = re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None
        self._known: dict[str, str] = {}
        self._taken = {*self._kept}

    def keeps(self, text: str) -> bool:
        """Tells whether a text stays as it is: it is kept, or nothing of it could be replaced."""
        return _form(text) in self._kept or not speaks(text)

    def of(self, text: str) -> str:
        """The pseudonym: the same for the same text, and the same but for case and outer blanks where only these
        differ."""
        if self.keeps(text):
            return text
        form = _form(text)
        if form not in self._known:
            self._known[form] = self._drawn(form)
            self._taken.add(self._known[form])
        new, begin = self._known[form], len(text) - len(text.lstrip())
        middle = text.strip()
        if len(new) != len(middle):
            return new
        cased = "".join(in_case_of(old, one) for old, one in zip(middle, new, strict=True))
        return text[:begin] + cased + text[begin + len(middle) :]

    def _drawn(self, form: str) -> str:
        stays = set[int]()
        for found in self._parts.finditer(form) if self._parts else ():
            stays.update(range(*found.span()))
        new = form
        for trial in range(_TRIALS):
            draw = self._dice.of("text", form, str(trial))
            new = "".join(
                one if place in stays else draw.choice(alphabet(one)) for place, one in enumerate(form)
            )
            if new not in self._taken and (new not in self._originals or trial >= _TRIALS // 2):
                return new
        return next((one for one in _all(form, stays) if one not in self._taken), form)


def _all(form: str, stays: Collection[int], most: int = 100_000) -> Iterator[str]:
    """All texts of a form, up to a number, in order: a small form may be nearly used up."""
    letters = [(one,) if place in stays else alphabet(one) for place, one in enumerate(form)]
    for number in range(most):
        text, left = "", number
        for choice in reversed(letters):
            left, place = divmod(left, len(choice))
            text = choice[place] + text
        if left:
            return
        yield text


def _form(text: str) -> str:
    return "".join(map(folded, text.strip()))


def number(text: str, kept: Collection[str], dice: Dice) -> str:
    """A number with as many digits before and behind the point, on the same side of 0, up to a third away.

    0, what is no number, and what is kept stay. The same number gets the same noise, however it is written.
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    if not value.is_finite() or not value or text in kept or not _NUMBER.fullmatch(text.strip()):
        return text
    draw = dice.of("number", format(_EXACT.normalize(value), "f"))
    exponent = value.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    whole = int(value.copy_abs())
    units, digits = int(_EXACT.scaleb(value.copy_abs(), scale)), len(str(whole))
    least = 10 ** (digits - 1 + scale) if whole else 1
    most = 10 ** (digits + scale) - 1
    away = max(units // 3, 1)
    low, high = max(least, units - away), min(most, units + away)
    new = units
    for _ in range(_TRIALS):
        new = draw.randint(low, high)
        if new != units or low == high:
            break
    if new == units:  # 1 alone lies between 1 and 1
        new = units + 1 if units < most else max(units - 1, 1)
    return format(_EXACT.scaleb(Decimal(new), -scale).copy_sign(value), "f")


class Times:
    """Days and times of day, all moved by the same span: whole weeks, so that days of the week stay.

    Args:
        originals: all days and timestamps; none of them is to stand for another one, if that can be.
        dice: draws.
    """

    def __init__(self, originals: Collection[str], dice: Dice):
        draw = dice.of("weeks")
        self._of_day = timedelta(minutes=draw.randint(61, 1379))
        best, fewest = timedelta(0), len(originals) + 2
        for _ in range(_SPANS):
            self._span = timedelta(weeks=draw.randint(*_WEEKS) * draw.choice((-1, 1)))
            moved = [self.day(one) for one in originals]
            again = sum(new in originals for new in moved)
            if _unix(originals) and not _unix(moved):
                again = len(originals) + 1
            if again < fewest:
                best, fewest = self._span, again
            if not again:
                break
        self._span = best

    def day(self, text: str) -> str:
        """A date or a timestamp; the time of day stays. What is none stays: ``infinity``, 0000-00-00."""
        found = _DAY.match(text)
        if found is None or not _FIRST_YEAR <= int(found[1]) <= _LAST_YEAR:
            return text
        try:
            moved = datetime(int(found[1]), int(found[2]), int(found[3])) + self._span
        except (ValueError, OverflowError):
            return text
        return f"{moved.year:04}-{moved.month:02}-{moved.day:02}{text[found.end() :]}"

    def stays(self, text: str) -> bool:
        """Tells whether a date stays as it is."""
        return self.day(text) == text

    def of_day(self, text: str) -> str:
        """A time of day; what is none stays."""
        parts = text.split(":", 2)
        if len(parts) < 2 or not all(one.isdigit() for one in parts[:2]) or int(parts[0]) > 23:
            return text
        minutes = int(parts[0]) * 60 + int(parts[1]) + int(self._of_day.total_seconds() // 60)
        return ":".join([f"{minutes // 60 % 24:02}", f"{minutes % 60:02}", *parts[2:]])


def _unix(texts: Collection[str]) -> bool:
    """Tells whether all days are such as a TIMESTAMP of MySQL holds."""
    years = [int(found[1]) for one in texts if (found := _DAY.match(one))]
    return all(_UNIX_YEARS[0] <= one <= _UNIX_YEARS[1] for one in years)


def raw(value: bytes, dice: Dice) -> bytes:
    """Bytes of the same number; empty ones stay."""
    return dice.of("bytes", value.hex()).randbytes(len(value))


def document(text: str, texts: Texts, kept: Collection[str], dice: Dice) -> str:
    """A JSON document of the same shape: its texts and names replaced as texts, its numbers with noise.

    What is no JSON is replaced as a text.
    """
    try:
        found = json.loads(text, parse_float=_Written, parse_int=_Written)
    except ValueError:
        return texts.of(text)
    return _written(found, texts, kept, dice)


def texts_in(text: str) -> set[str]:
    """The texts and names in a JSON document; none for what is no JSON."""
    try:
        left = [json.loads(text)]
    except ValueError:
        return set()
    found = set[str]()
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
    return found


class _Written(str):
    """A number as it was written."""


def _written(value: Any, texts: Texts, kept: Collection[str], dice: Dice) -> str:
    if isinstance(value, _Written):
        return number(value, kept, dice)
    if isinstance(value, str):
        return json.dumps(texts.of(value), ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(_written(one, texts, kept, dice) for one in value)}]"
    if isinstance(value, dict):
        members = (
            f"{json.dumps(texts.of(name), ensure_ascii=False)}: {_written(one, texts, kept, dice)}"
            for name, one in value.items()
        )
        return f"{{{', '.join(members)}}}"
    return json.dumps(value)
