"""One new table at one place of the log: the rows that the mapping makes of old ones, and those that were seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Texts = tuple[str | None, ...]
"""A row as canonical texts, in the order of the columns."""
Status = Literal["different", "missing", "extra", "twice"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose rows differ; None for no row."""

    target: str
    key: Texts
    status: Status
    expected: Texts | None
    found: Texts | None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's rows.

    Attributes:
        target: its name.
        columns: of all rows, those that the mapping fills.
        key: places of the key among them.
        expected: what the mapping makes.
        found: what was seen.
    """

    target: str
    columns: tuple[str, ...]
    key: tuple[int, ...]
    expected: tuple[Texts, ...]
    found: tuple[Texts, ...]

    def by_key(self, rows: Sequence[Texts]) -> dict[Texts, Texts]:
        """The rows by key; of several with one key, the last."""
        return {tuple(row[place] for place in self.key): row for row in rows}

    def differences(self) -> list[Difference]:
        """All keys whose rows differ."""
        expected, found = self.by_key(self.expected), self.by_key(self.found)
        doubled = {
            key
            for rows in (self.expected, self.found)
            for key, times in Counter(tuple(row[place] for place in self.key) for row in rows).items()
            if times > 1
        }
        result = [Difference(self.target, key, "twice", expected.get(key), found.get(key)) for key in doubled]
        for key in {**expected, **found}:
            want, have = expected.get(key), found.get(key)
            if key in doubled or want == have:
                continue
            status: Status = "missing" if have is None else "extra" if want is None else "different"
            result.append(Difference(self.target, key, status, want, have))
        return sorted(result, key=lambda one: str(one.key))

    def said(self, one: Difference) -> str:
        """A difference in words: the key, and the columns that differ."""
        key = ", ".join(
            f"{self.columns[place]} {value}" for place, value in zip(self.key, one.key, strict=True)
        )
        if one.expected is None or one.found is None or one.status == "twice":
            return f"{self.target}, {key}: {one.status}"
        cells = ", ".join(
            f"{name} is {have}, the mapping says {want}"
            for name, want, have in zip(self.columns, one.expected, one.found, strict=True)
            if want != have
        )
        return f"{self.target}, {key}: {cells}"
