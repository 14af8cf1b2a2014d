"""The whole history under pseudonyms, with a list of what was kept and what can still be told."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation

from scenarios.chaos.incident.history import Cell, History
from scenarios.chaos.incident.pseudonyms import ordered, plain
from scenarios.chaos.incident.pseudonyms.constants import Constants
from scenarios.chaos.incident.pseudonyms.dice import Dice
from scenarios.chaos.incident.pseudonyms.treatment import Treatment
from scenarios.chaos.incident.structure import Structure

_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_EXACT = Context(prec=400)
"""Digits enough for any decimal: the usual context rounds."""
_NOT_SEARCHED = 4
"""Texts with fewer characters are in any file."""
TELLS = (
    "equal texts and equal numbers have equal pseudonyms, in all tables: how often, and where, can be counted",
    "the order of keys, and which texts among keys begin alike, is that of the originals",
    "texts have the length, the blanks, the punctuation and the classes of characters of the originals",
    "numbers that are no keys are at most a third away from the originals, with as many digits; 0 stays 0",
    "whole numbers in keys have as many digits as the originals, where there was room, and the same sign",
    "dates keep their distances, times of day of timestamps, and days of the week",
    "which rows belong together, how many there are, which values are NULL or empty, and the order of transactions",
    "names of tables and columns, types, and the project's code with its constants and comments are the originals",
)
"""Facts about the originals that pseudonyms don't hide."""


@dataclass(frozen=True)
class Pseudonymised:
    """A history under pseudonyms.

    Attributes:
        history: with them.
        kept: by column (``table.column``), values that stayed: the code or the type mentions them, or nothing of
            them could be replaced.
        lacking: by column, how many values got themselves, or an original of another row, for lack of room.
    """

    history: History
    kept: Mapping[str, Sequence[str]]
    lacking: Mapping[str, int]


class Pseudonyms:
    """The pseudonyms of one file.

    Args:
        structure: of the old side.
        treatments: of all columns.
        history: with the originals.
        constants: that the project's code mentions.
        key: random bytes.
    """

    def __init__(
        self,
        structure: Structure,
        treatments: Sequence[Treatment],
        history: History,
        constants: Constants,
        key: bytes,
    ):
        self._dice, self._constants = Dice(key), constants
        self._kinds = {(one.table, one.column): one.kind for one in treatments}
        self._types = {
            (name, one.name): one.type for name, table in structure.tables.items() for one in table.columns
        }
        self._history, self._found = history, _values(history)
        names = {one.lower() for table in structure.tables.values() for one in table.names()}
        names |= {name.lower() for name in structure.tables}
        parts = [one for one in constants.texts if one.strip("%_ ").lower() not in names]
        values = self._found
        originals = {one for found in values.values() for one in found if isinstance(one, str)}
        self._texts = plain.Texts(originals, constants.texts, parts, self._dice)
        dates = {
            one
            for place, found in values.items()
            for one in found
            if isinstance(one, str) and self._kinds[place] == "date"
        }
        self._times = plain.Times(dates, self._dice)
        self._of_keys, self._of_numbers = self._ordered(values)

    def history(self) -> Pseudonymised:
        """The history under pseudonyms."""
        kept, lacking = defaultdict[str, set[str]](set), defaultdict[str, int](int)
        originals = {one for found in self._found.values() for one in found}
        for (table, column), values in self._found.items():
            kind = self._kinds[table, column]
            for old in values:
                new = self.cell(table, column, old)
                if old in (None, "", b"") or kind == "blank":
                    continue
                place = f"{table}.{column}"
                if kind == "json" and isinstance(old, str):
                    kept[place] |= {one for one in plain.texts_in(old) if one and self._texts.keeps(one)}
                if new == old and self._stays(kind, old):
                    kept[place].add(old.hex() if isinstance(old, bytes) else str(old))
                elif new == old or (new in originals and kind in ("key", "text", "uuid", "bytes", "date")):
                    lacking[place] += 1
        return Pseudonymised(
            self._history.mapped(self.cell),
            {place: sorted(found) for place, found in sorted(kept.items()) if found},
            dict(sorted(lacking.items())),
        )

    def cell(self, table: str, column: str, value: Cell) -> Cell:
        """The value that stands for another one in a column."""
        kind = self._kinds[table, column]
        if value is None or kind == "blank":
            return None
        if isinstance(value, bytes):
            if kind == "keep":
                return value
            return self._of_keys.get(value, value) if kind == "key" else plain.raw(value, self._dice)
        if kind == "keep" or not value:
            return value
        if kind in ("key", "uuid"):
            number = self._of_numbers.get(value) if self._numeric(table, column) else None
            return number or self._of_keys.get(value) or self._texts.of(value)
        return self._replaced(kind, value)

    def text(self, value: str) -> str | None:
        """The pseudonym of a value of which only the text is known, as in a report; None for one that
        is neither in the rows nor in the code."""
        for (table, column), values in self._found.items():
            if value in values:
                new = self.cell(table, column, value)
                return new if isinstance(new, str) else None
        return value if value in self._constants.texts or value in self._constants.numbers else None

    def originals(self) -> set[str]:
        """Texts of the values that must not be in the file: none that is kept, none of fewer than 4 characters."""
        found = set[str]()
        for (table, column), values in self._found.items():
            kind = self._kinds[table, column]
            if kind in ("keep", "number"):
                continue
            for old in values:
                if isinstance(old, str) and self.cell(table, column, old) != old:
                    found.add(old)
                if isinstance(old, str) and kind == "json":
                    found.update(one for one in plain.texts_in(old) if self._texts.of(one) != one)
        return {one for one in found - self._again() if len(one) >= _NOT_SEARCHED}

    def _again(self) -> set[Cell]:
        """Originals that stand for another value, since there was no room for others; they are counted as lacking."""
        return {
            self.cell(*place, old) for place, found in self._found.items() for old in found if old is not None
        }

    def _replaced(self, kind: str, value: str) -> str:
        if kind == "number":
            return plain.number(value, self._constants.numbers, self._dice)
        if kind == "date":
            return value if value in self._constants.texts else self._times.day(value)
        if kind == "time":
            return self._times.of_day(value)
        if kind == "json":
            return plain.document(value, self._texts, self._constants.numbers, self._dice)
        # Equal stays equal, also of a text that is in a key elsewhere.
        found = self._of_keys.get(value)
        return found if isinstance(found, str) else self._texts.of(value)

    def _stays(self, kind: str, old: Cell) -> bool:
        if not isinstance(old, str) or kind in ("keep", "date", "time"):
            return True
        if kind == "number" or _scaled(old) is not None:
            return old in self._constants.numbers or not _amount(old)
        return self._texts.keeps(old)

    def _numeric(self, table: str, column: str) -> bool:
        return self._types[table, column] not in ("string", "binary")

    def _ordered(
        self, values: Mapping[tuple[str, str], Iterable[Cell]]
    ) -> tuple[dict[Cell, str | bytes], dict[Cell, str]]:
        """Pseudonyms of texts, bytes and UUIDs in keys, and those of numbers: each sort has an order of its own, so a
        text that is a number elsewhere has another one there."""
        texts, raws, uuids = set[str](), set[bytes](), set[str]()
        numbers = defaultdict[int, set[int]](set)
        tops = defaultdict[int, set[int]](set)
        for place, found in values.items():
            if self._kinds[place] not in ("key", "uuid"):
                continue
            numeric = self._numeric(*place)
            if self._types[place] in _BITS:
                tops[0].add(2 ** _BITS[self._types[place]] - 1)
            elif (digits := _DECIMAL.fullmatch(self._types[place])) is not None:
                tops[int(digits[2])].add(10 ** int(digits[1]) - 1)
            for one in found:
                if isinstance(one, bytes):
                    raws.add(one)
                elif one and numeric and (scaled := _scaled(one)) is not None:
                    numbers[scaled[1]].add(scaled[0])
                elif one and _UUID.fullmatch(one):
                    uuids.add(one)
                elif one:
                    texts.add(one)
        kept = {one for one in texts if self._texts.keeps(one)}
        result: dict[Cell, str | bytes] = {one: one for one in kept}
        result.update(ordered.of_texts(texts, kept, self._dice))
        for old_bytes, new_bytes in ordered.of_bytes(raws, self._dice).items():
            result[old_bytes] = new_bytes
        result.update(ordered.of_uuids(uuids, self._dice))
        of_numbers = dict[Cell, str]()
        for scale, units in numbers.items():
            fixed = {
                scaled[0]
                for one in self._constants.numbers
                if (scaled := _scaled(one)) is not None and scaled[1] == scale
            }
            for old, new in ordered.of_numbers(units, fixed, tops[scale], self._dice).items():
                of_numbers[_unscaled(old, scale)] = _unscaled(new, scale)
        return result, of_numbers


def _values(history: History) -> dict[tuple[str, str], dict[Cell, None]]:
    found = defaultdict[tuple[str, str], dict[Cell, None]](dict)
    for table, row in history.every():
        for column, value in row.items():
            found[table, column][value] = None
    return found


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal(0)


def _scaled(text: str) -> tuple[int, int] | None:
    """A number as whole units and digits behind the point; None for what is none."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return None
    scale = max(-exponent, 0)
    return int(_EXACT.scaleb(value, scale)), scale


def _unscaled(units: int, scale: int) -> str:
    return format(_EXACT.scaleb(Decimal(units), -scale), "f")
