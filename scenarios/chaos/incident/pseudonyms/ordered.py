"""Pseudonyms of keys, which keep their order: of texts and bytes character by character, of whole numbers by gaps."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from scenarios.chaos.incident.pseudonyms.dice import Dice
from scenarios.chaos.incident.pseudonyms.letters import alphabet, folded, in_case_of

_TRIALS = 40
_ROOM, _LEAST, _POOL = 20, 4, 1000
"""Numbers per pseudonym that are looked for, and that are enough; ranges up to so much larger are listed."""
_BYTES = tuple(map(chr, range(256)))
_HEX = tuple("0123456789abcdef")
Alphabet = Callable[[str], tuple[str, ...]]


def of_texts(texts: Iterable[str], kept: Collection[str], dice: Dice) -> dict[str, str]:
    """A pseudonym for every text that isn't kept.

    Texts that differ in case only get pseudonyms that do; a common beginning stays one; order by code points, and by
    small letters, is kept among those that aren't kept themselves.
    """
    return _best([one for one in texts if one not in kept], alphabet, dice, "text")


def of_bytes(values: Iterable[bytes], dice: Dice) -> dict[bytes, bytes]:
    """A pseudonym of the same length for every value, in their order."""
    found = _best([one.decode("latin-1") for one in values], lambda _: _BYTES, dice, "bytes", cased=False)
    return {old.encode("latin-1"): new.encode("latin-1") for old, new in found.items()}


def of_uuids(values: Iterable[str], dice: Dice) -> dict[str, str]:
    """A UUID for every UUID, in their order; which version it says it is doesn't stay."""
    return _best(values, lambda one: _HEX if one in _HEX else (one,), dice, "uuid")


def of_numbers(
    numbers: Iterable[int], kept: Collection[int], tops: Collection[int], dice: Dice
) -> dict[int, int]:
    """A number for every number that isn't kept, in their order, with as many digits where there is room.

    Args:
        numbers: all that occur.
        kept: those that stay as they are, as 0 does.
        tops: the greatest numbers of the columns' types: what a type holds stays within it.
        dice: draws.
    """
    wanted = {*numbers}
    found = {one: one for one in wanted if not one or one in kept}
    for sign in (1, -1):
        members = sorted(one * sign for one in wanted - {*found} if one * sign > 0)
        fixed = sorted(one * sign for one in kept if one * sign > 0)
        for low, high in _ranges(fixed, tops, members):
            inside = [one for one in members if low <= one <= high]
            chosen = _spread(inside, (low, high), {one * sign for one in wanted}, dice)
            found.update((old * sign, new * sign) for old, new in chosen.items())
    return found


def _ranges(fixed: Iterable[int], tops: Iterable[int], members: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that no number leaves: between kept ones, and within what a type holds."""
    ends = sorted({(one - 1, one + 1) for one in fixed} | {(one, one + 1) for one in tops})
    low = 1
    for high, following in ends:
        yield low, high
        low = max(low, following)
    yield low, max(low, 10 ** (len(str(members[-1])) + 2) if members else low)


def _spread(
    members: Sequence[int], within: tuple[int, int], avoided: Collection[int], dice: Dice
) -> dict[int, int]:
    """Numbers in order within a range, with as many digits as they had where that leaves room."""
    found: dict[int, int] = {}
    floor, later = within[0] - 1, len(members)
    for digits, group in groupby(members, key=lambda one: len(str(one))):
        old = list(group)
        later -= len(old)
        top = within[1] - later
        low = min(max(10 ** (digits - 1), floor + 1), top - len(old) + 1)
        high = min(10**digits - 1, top)
        if high - low + 1 < _LEAST * len(old):
            high = min(top, low + _ROOM * len(old))
        new = _drawn(len(old), low, high, avoided, dice.of("numbers", str(low), str(high)))
        floor = new[-1]
        found.update(zip(old, new, strict=True))
    return found


def _drawn(number: int, low: int, high: int, avoided: Collection[int], draw: random.Random) -> list[int]:
    """Draws as many numbers of a range, rising; those that are avoided last."""
    if high - low < _ROOM * number + _POOL:
        pool = list(range(low, high + 1))
        draw.shuffle(pool)
        pool.sort(key=lambda one: one in avoided)
        return sorted(pool[:number])
    chosen: set[int] = set()
    while len(chosen) < number:
        one = draw.randint(low, high)
        if one not in avoided:
            chosen.add(one)
    return sorted(chosen)


def _best(
    texts: Iterable[str], letters: Alphabet, dice: Dice, what: str, *, cased: bool = True
) -> dict[str, str]:
    """The first of some drawings that gives nobody an original as its pseudonym, or the one with the fewest."""
    originals = sorted({*texts})
    best: dict[str, str] = {}
    fewest = len(originals) + 1
    for trial in range(_TRIALS if originals else 0):
        found = _Tree(originals, letters, cased).drawn(dice, f"{what} {trial}")
        taken = sum(new in found for new in found.values())
        if taken < fewest:
            best, fewest = found, taken
        if not taken:
            break
    return best


class _Tree:
    """The texts by their beginnings: below each, the folded characters that follow."""

    def __init__(self, texts: Sequence[str], letters: Alphabet, cased: bool):
        self._texts, self._letters = texts, letters
        self._folded = folded if cased else _same
        self._next: dict[str, set[str]] = defaultdict(set)
        for text in texts:
            beginning = ""
            for one in map(self._folded, text):
                self._next[beginning].add(one)
                beginning += one

    def drawn(self, dice: Dice, words: str) -> dict[str, str]:
        """A pseudonym for every text."""
        chosen = {start: self._one(dice, words, start, below) for start, below in self._next.items()}
        found = {}
        for text in self._texts:
            beginning, new = "", ""
            for character in text:
                small = self._folded(character)
                new += (
                    in_case_of(character, chosen[beginning][small])
                    if small != character
                    else chosen[beginning][small]
                )
                beginning += small
            found[text] = new
        return found

    def _one(self, dice: Dice, words: str, start: str, below: Collection[str]) -> Mapping[str, str]:
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for one in sorted(below):
            groups[self._letters(one)].append(one)
        found: dict[str, str] = {}
        for letters, members in groups.items():
            draw = dice.of(words, start, letters[0])
            places = sorted(draw.sample(range(len(letters)), len(members)))
            found.update(zip(members, (letters[place] for place in places), strict=True))
        return found


def _same(character: str) -> str:
    return character
