"""Differences between two answers, cell by cell, with the names of their causes.

A named cause says that both sides hold the right value and show it differently. The application may mind or not; the
file of queries says which causes it accepts (``accept``). A difference without a named cause is a bug.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from verify.dual_read.answer import Answer, Row, Value, number_text, row_order
from verify.report.display import shown
from verify.tables.compare.json_text import canonical_json
from verify.tables.findings.cause import likely_cause

CAUSES = {
    "ordering": "the same rows in another order, where the query has no total order",
    "null_or_empty": "NULL on one side, empty text on the other",
    "scale": "digits cut off or rounded to fewer places",
    "float": "the same number in another floating-point width, or within 4 units in the last place",
    "case": "upper and lower case",
    "space": "spaces at an end",
    "unicode": "another Unicode form of the same characters",
    "time_zone": "whole or quarter hours apart, at most 26: another time zone",
    "type": "the same text as another type",
}
"""Named causes, as ``accept`` spells them."""
ORDERS = ("total", "partial", "none")
"""The kinds of ORDER BY in a query: it leaves no ties, may leave some, or is missing."""
_QUARTER_US = 900_000_000
_CELLS_MAX = 20


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One cell, as people read it. ``name`` is a key of ``CAUSES``, or empty if the cell is wrong."""

    row: int
    column: str
    old: str | None
    new: str | None
    name: str
    cause: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Two answers that are not equal.

    Attributes:
        cells: the first of the cells that differ.
        names: all named causes met, sorted.
        bug: whether there is a difference without a named cause.
        summary: one line.
        rows: differences of whole rows, in words without values.
    """

    cells: tuple[CellDifference, ...]
    names: tuple[str, ...]
    bug: bool
    summary: str
    rows: tuple[str, ...] = ()

    def accepted(self, accept: Sequence[str]) -> bool:
        """Returns whether all differences have named causes that were accepted."""
        return not self.bug and set(self.names) <= set(accept)


def difference(old: Answer, new: Answer, order: str) -> Difference | None:
    """Finds the difference between two answers; None when they are equal. ``order`` is one of ``ORDERS``."""
    if old.rows and new.rows and len(old.rows[0]) != len(new.rows[0]):
        text = f"{len(old.rows[0])} columns in the old answer, {len(new.rows[0])} in the new one"
        return Difference((), (), True, text, (text,))
    left, right = list(map(_keys, old.rows)), list(map(_keys, new.rows))
    if left == right:
        return None
    if Counter(left) == Counter(right):
        return _another_order(order)
    if order == "total" and len(left) == len(right):
        pairs = [(i, old.rows[i], new.rows[i]) for i in range(len(left)) if left[i] != right[i]]
        return _of_pairs(pairs, old, new)
    pairs, lost, gained = _paired(old, new)
    return _of_pairs(pairs, old, new, lost, gained)


def _another_order(order: str) -> Difference | None:
    if order == "none":
        return None
    if order == "partial":
        return Difference((), ("ordering",), False, CAUSES["ordering"])
    text = "the same rows in another order, although the order is total"
    return Difference((), (), True, text, (text,))


def _keys(row: Row) -> tuple[tuple[str, str | None], ...]:
    return tuple(map(_key, row))


def _key(value: Value) -> tuple[str, str | None]:
    """Returns a key that is the same for equal values: numbers by value, whatever type the driver chose; texts that
    are UUIDs alike."""
    text = value.text
    if value.kind == "float8" and text is not None and text not in ("NaN", "inf", "-inf"):
        return "number", "-0" if text == "-0.0" else number_text(Decimal(text))
    if value.kind in ("numeric", "float8"):
        return "number", text
    if value.kind in ("timestamp", "timestamptz"):
        return "moment", text  # sessions are in UTC: a moment without a zone is one of UTC
    if value.kind == "uuid":
        return "text", text
    return value.kind, text


def _paired(old: Answer, new: Answer) -> tuple[list[tuple[int, Row, Row]], list[Row], list[Row]]:
    """Pairs rows of the old answer alone with the new rows they most likely became; also returns unpaired rows."""
    theirs = Counter(map(_keys, new.rows))
    left: list[tuple[int, Row]] = []
    for place, row in enumerate(old.rows):
        key = _keys(row)
        if theirs[key]:
            theirs[key] -= 1
        else:
            left.append((place, row))
    right = []
    for row in reversed(new.rows):
        key = _keys(row)
        if theirs[key]:
            theirs[key] -= 1
            right.append(row)
    pairs, rest = [], []
    for place, row in left:
        alike = next((new_row for new_row in right if _alike(row, new_row)), None)
        if alike is None:
            rest.append((place, row))
        else:
            right.remove(alike)
            pairs.append((place, row, alike))
    if len(rest) == len(right):  # changed rows, not missing ones: in one order they stand beside each other
        rest.sort(key=lambda placed_row: row_order(placed_row[1]))
        pairs += [(place, a, b) for (place, a), b in zip(rest, sorted(right, key=row_order), strict=True)]
        rest, right = [], []
    return pairs, [row for _, row in rest], right


def _alike(a: Row, b: Row) -> bool:
    return all(_key(x) == _key(y) or cell_name(x, y) for x, y in zip(a, b, strict=True))


def _of_pairs(
    pairs: Sequence[tuple[int, Row, Row]],
    old: Answer,
    new: Answer,
    lost: Sequence[Row] = (),
    gained: Sequence[Row] = (),
) -> Difference:
    names = old.columns or new.columns
    cells: list[CellDifference] = []
    found, wrong = set(), 0
    for place, a, b in pairs:
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            if _key(x) == _key(y):
                continue
            name = cell_name(x, y)
            found.add(name)
            wrong += not name
            if len(cells) < _CELLS_MAX:
                column = names[index] if index < len(names) else f"column {index + 1}"
                cause = CAUSES.get(name) or _unnamed(x, y)
                cells.append(
                    CellDifference(place, column, shown(x.kind, x.text), shown(y.kind, y.text), name, cause)
                )
    summary = [f"wrong cells: {wrong}"] if wrong else []
    summary += [f"{len(lost)} rows only in the old answer: {_row(lost[0])}"] if lost else []
    summary += [f"{len(gained)} rows only in the new answer: {_row(gained[0])}"] if gained else []
    named = tuple(sorted(found - {""}))
    summary += [CAUSES[name] for name in named]
    whole = ["rows only in the old answer"] if lost else []
    whole += ["rows only in the new answer"] if gained else []
    return Difference(tuple(cells), named, bool(wrong or lost or gained), "; ".join(summary), tuple(whole))


def _row(row: Row) -> str:
    return "(" + ", ".join("NULL" if v.text is None else str(shown(v.kind, v.text))[:60] for v in row) + ")"


def _unnamed(a: Value, b: Value) -> str:
    if a.text is not None and b.text is not None and _key(a)[0] != _key(b)[0]:
        return f"another type: {a.kind} against {b.kind}"
    return (
        likely_cause(a.kind if a.text is not None else b.kind, a.text, b.text)
        .replace("mapped row", "old answer")
        .replace("in the target", "in the new answer")
    )


def cell_name(a: Value, b: Value) -> str:
    """The named cause of two cells that differ, or empty."""
    if a.text is None or b.text is None:
        return "null_or_empty" if "" in (a.text, b.text) else ""
    kinds = {a.kind, b.kind}
    if kinds <= {"numeric", "float8"}:
        return _number_name(a, b)
    if kinds == {"text"}:
        return _text_name(a.text, b.text)
    if kinds <= {"timestamp", "timestamptz"}:
        apart = abs(int(a.text) - int(b.text))
        return "time_zone" if apart <= 104 * _QUARTER_US and apart % _QUARTER_US == 0 else ""
    if kinds == {"json", "text"}:
        return "type" if canonical_json(a.text) == canonical_json(b.text) else ""
    if "text" in kinds and shown(a.kind, a.text) == shown(b.kind, b.text):
        return "type"
    return ""


def _text_name(a: str, b: str) -> str:
    if a.strip(" ") == b.strip(" "):
        return "space"
    if unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b):
        return "unicode"
    return "case" if a.casefold() == b.casefold() else ""


def _number_name(a: Value, b: Value) -> str:
    try:
        x, y = Decimal(a.text or ""), Decimal(b.text or "")
    except InvalidOperation:
        return ""
    if not (x.is_finite() and y.is_finite()):
        return ""
    if "float8" in (a.kind, b.kind):
        f, g = float(x), float(y)
        narrow = Context(prec=6)  # a 32-bit float prints at least six true digits
        near = abs(f - g) <= 4 * max(math.ulp(f), math.ulp(g))
        return "float" if near or narrow.plus(x) == narrow.plus(y) else ""
    fewer, more = sorted((x, y), key=_places)
    if _places(fewer) == _places(more):
        return ""
    step, wide = Decimal(1).scaleb(-_places(fewer)), Context(prec=1000)
    cuts = (more.quantize(step, mode, wide) for mode in (ROUND_DOWN, ROUND_HALF_UP, ROUND_HALF_EVEN))
    return "scale" if fewer in cuts else ""


def _places(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))
