"""The words of the rules of stories, in plain Python: shared by their oracles, and used by no mapping."""

from __future__ import annotations

import functools
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from scenarios.database import Database

Row = dict[str, Any]
Table = tuple[tuple[str, ...], Counter[tuple[Any, ...]]]
"""Names of columns, and rows with how often each occurs."""

_CAPITALS = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is on one side only. A changed row makes two of them.

    Attributes:
        table: new table.
        side: ``missing`` if the new database lacks the row, ``extra`` if it should not have it.
        row: the values by column.
    """

    table: str
    side: str
    row: Mapping[str, Any]

    def __str__(self) -> str:
        return (
            f"{self.side} in {self.table}: {', '.join(f'{name}={value}' for name, value in self.row.items())}"
        )


def differences(expected: Mapping[str, Table], actual: Mapping[str, Table]) -> list[Difference]:
    """All rows of which the two sides don't have as many."""
    found = []
    for name, (columns, rows) in expected.items():
        for side, surplus in (("missing", rows - actual[name][1]), ("extra", actual[name][1] - rows)):
            found += [
                Difference(name, side, dict(zip(columns, row, strict=True))) for row in surplus.elements()
            ]
    return found


def table(columns: str, rows: Iterable[Sequence[Any]]) -> Table:
    """Rows of the columns with these names."""
    names = tuple(columns.split())
    counted = Counter(tuple(row) for row in rows)
    assert all(len(row) == len(names) for row in counted)
    return names, counted


def read(database: Database, query: str) -> list[Row]:
    """Rows of a query by column."""
    connection = database.connect()
    try:
        cursor: Any = connection.cursor()
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    finally:
        connection.close()


def trim(text: str | None) -> str | None:
    """Removes U+0020 at both ends."""
    return None if text is None else text.strip(" ")


def lower(text: str) -> str:
    """A-Z in lower case, nothing else."""
    return text.translate(_CAPITALS)


def slug(text: str) -> str:
    """Lower case, runs of other characters than a-z and 0-9 as one dash, none at the ends."""
    return re.sub("[^a-z0-9]+", "-", lower(text)).strip("-")


@functools.lru_cache(maxsize=200_000)
def uuid5(namespace: uuid.UUID, *parts: object) -> uuid.UUID:
    """The parts joined by ``|``, as a UUID of version 5."""
    return uuid.uuid5(namespace, "|".join(map(str, parts)))


def naive(text: str | None) -> datetime | None:
    """A date and time as MySQL prints it; None for the zero date."""
    return None if text is None or text.startswith("0000-00-00") else datetime.fromisoformat(text)


def utc(text: str | None) -> datetime | None:
    """The instant of a TIMESTAMP, printed in UTC."""
    found = naive(text)
    return None if found is None else found.replace(tzinfo=UTC)


def day(text: str | None) -> date | None:
    """A date as MySQL or PostgreSQL prints it; None for the zero date and ``infinity``."""
    return None if text is None or text in ("0000-00-00", "infinity") else date.fromisoformat(text)


def rounded(value: Fraction, digits: int) -> Fraction:
    """Rounds to so many decimals, exact halves away from zero."""
    scaled = abs(value) * 10**digits + Fraction(1, 2)
    number = Fraction(scaled.numerator // scaled.denominator, 10**digits)
    return -number if value < 0 else number
