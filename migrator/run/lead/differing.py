"""The words for how a target's mapping differs from the one that its rows so far were mapped by."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from migrator.model.progress import Mapped
from transforms.analysis.outline import VERSION

_PARTS = {
    "Filter": "a filter",
    "Join": "a join",
    "Aggregate": "what it groups by",
    "Window": "a window",
    "Generate": "what it explodes",
    "Union": "what it unites",
    "Intersect": "what it intersects",
    "Except": "what it takes away",
    "Sort": "the order of its rows",
    "Distinct": "what it takes for duplicates",
    "Deduplicate": "what it takes for duplicates",
    "constants": "constant rows",
    "shape": "the order of its steps",
    "grain": "its grain",
    "links": "its links",
    "roles": "its roles",
    "columns": "its columns (too many to keep what each is)",
    "unknown": "something that its columns, filters and joins don't show",
}
_ONLY = ("", " (the order of a struct's fields)", " (what a Python function does)", " (a literal)")
_START = 4
"""Characters of the digest of a part seen in another way (see ``transforms.analysis.outline``)."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A comparison of two mappings of a target.

    Attributes:
        words: each difference, as far as it is known.
        others: whether rows mapped so far may be others now.
        doubt: why their contents couldn't be compared; empty where they could.
    """

    words: tuple[str, ...] = ()
    others: bool = False
    doubt: str = ""

    def said(self) -> str:
        """Returns the differences as one text."""
        return ", ".join(self.words)


def differing(old: Mapped, new: Mapped, source: Collection[str]) -> Differing:
    """Compares what made a target's rows so far with what makes them now.

    A column that isn't written any more makes no others: it stays as it is. Contents are compared where they are
    taken with the same versions, and the columns that both read have the types that they had. Where an outline is
    the same the rows are, whatever the fingerprints say.

    Args:
        old: as the ledger has it.
        new: of the mapping as it is now.
        source: columns of the source tables that it reads, as ``table.column``.
    """
    before, after = _read(old), _read(new)
    doubt = _doubt(old, new, before, after, source)
    parts = [*_shapes(old, new), *_columns(old, new), *_outlines(before, after)]
    shaped = (old.schema, old.shape) != (new.schema, new.shape) or bool(set(new.columns) - set(old.columns))
    content = bool(old.content and new.content) and old.content != new.content
    if content and not before:
        parts.append("what else isn't known: the ledger was written by a version that kept no description")
    if before and after and not parts:
        return (
            Differing()
        )  # only columns are written in another order, or steps in between that reach nothing
    return Differing(tuple(parts), shaped or (content and not doubt), doubt)


def _read(mapped: Mapped) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mapped.outline) if mapped.outline else {}
    return found if found.get("version") == VERSION else {}


def _doubt(
    old: Mapped, new: Mapped, before: Mapping[str, Any], after: Mapping[str, Any], source: Collection[str]
) -> str:
    """Tells why two fingerprints can't be compared; nothing where they can."""
    if not old.content and not old.basis:
        return "" if not new.content and not new.basis else "none was kept of the mapping before"
    if not new.content or not old.content:
        return "what its functions do can't be read"
    if old.basis == new.basis:
        return ""
    versions = [basis.rpartition(", types ")[0] for basis in (old.basis, new.basis)]
    if versions[0] != versions[1]:
        return f"it was made with {versions[0] or 'something unknown'}, now it is with {versions[1]}"
    reads = before.get("reads", {})
    if not reads or not after:
        return "the source columns that it reads, or their types, are others"
    now = after.get("reads", {})
    retyped = sorted(column for column in {*reads} & {*now} if reads[column] != now[column])
    if retyped:
        return f"the type of {', '.join(retyped)} is another one"
    gone = sorted({*reads} - {*now} - {*source})
    return f"{', '.join(gone)} isn't in the source any more" if gone else ""


def _shapes(old: Mapped, new: Mapped) -> Iterator[str]:
    if old.schema != new.schema:
        yield f"its schema was {old.schema} and is {new.schema}"
    if old.shape == new.shape:
        return
    shapes = [json.loads(shape) for shape in (old.shape, new.shape)]
    if not all(isinstance(shape, list) and len(shape) == 4 for shape in shapes):
        yield "its key, source tables or surrogates"
        return
    names = ("it", "its key", "its source tables", "its surrogates")
    for name, was, now in zip(names, *shapes, strict=True):
        if was != now:
            yield f"{name} was {_shown(was)} and is {_shown(now)}"


def _shown(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(" by ".join(one) if isinstance(one, list) else str(one) for one in value) or "none"


def _columns(old: Mapped, new: Mapped) -> Iterator[str]:
    for name in sorted(set(new.columns) - set(old.columns)):
        yield f"column {name} is new"
    for name in sorted(set(old.columns) - set(new.columns)):
        yield f"column {name} is gone"


def _outlines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yields each column that is computed otherwise, then the other parts."""
    if not before or not after:
        return
    columns, now = before.get("columns", {}), after.get("columns", {})
    for name in sorted({*columns} & {*now}):
        if columns[name].partition(",")[0] != now[name].partition(",")[0]:
            yield f"column {name} is computed otherwise{_only(columns[name], now[name])}"
    parts, others = before["parts"], after["parts"]
    found = [name for name in sorted({*parts} | {*others}) if parts.get(name) != others.get(name)]
    if ("columns" in parts) != ("columns" in others):
        found.remove("columns")  # one of the two was too long: nothing to compare
    for name in found:
        if name == "shape" and len(found) > 1:
            continue
        words = _part(name)
        if name not in parts or name not in others:
            yield f"{words} that wasn't there" if name in others else f"{words} that is gone"
        else:
            yield f"{words}{_only(parts[name], others[name])}"


def _part(name: str) -> str:
    kind, _, place = name.partition(" ")
    if kind == "grain" and place:
        return "its computed grain"
    if kind == "value" and place:
        return f"computed values of {place}"
    return _PARTS.get(name, f"a step of kind {name}")


def _only(was: str, now: str) -> str:
    """Tells the one way to look at a part in which the two are the same."""
    for way in range(1, len(_ONLY)):
        if _seen(was, way) == _seen(now, way):
            return _ONLY[way]
    return ""


def _seen(part: str, way: int) -> str:
    exact, *others = part.split(",")
    return (others[way - 1] if len(others) >= way else "") or exact[:_START]
