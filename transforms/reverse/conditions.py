"""Conditions of forward mappings: which rows they tell apart, and which surely no row fulfils both. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transforms.analysis.expressions import Expression
from transforms.python_source import column_literal, text_literal
from transforms.reverse.joined_texts import prefix
from transforms.reverse.pieces import Piece
from transforms.reverse.texts import literal


def telling(piece: Piece, other: Piece, read: Mapping[str, str]) -> str | None:
    """A condition that holds of one piece's rows and of none of the other's; None if there is none.

    ``read``: types in which the new table's columns are read, by name.
    """
    both = [(name, one, other.columns[name]) for name, one in piece.columns.items() if name in other.columns]
    for name, expression, theirs in both:
        mine, others = literal(expression), literal(theirs)
        if mine in (None, "None") or others is None or others == mine:
            continue
        code = f"F.col({column_literal(name)})"
        if mine not in ("True", "False"):
            return f"{code} == {mine}"
        if read.get(name) != "boolean":
            code = f"flag({column_literal(name)})"
        return code if mine == "True" else f"~{code}"
    for name, expression, theirs in both:
        first, second = prefix(expression), prefix(theirs)
        if first and second and not first.startswith(second) and not second.startswith(first):
            return f"F.col({column_literal(name)}).startswith({text_literal(first)})"
    return None


def apart(one: Sequence[Expression], other: Sequence[Expression]) -> bool:
    """Tells whether no row fulfils both sides' conditions, as far as that is plain."""
    return any(_contradict(a, b) or _contradict(b, a) for a in one for b in other)


def _contradict(a: Expression, b: Expression) -> bool:
    if a.kind == "Not" and a.children[0] == b:
        return True
    if a.kind == "IsNull" and (b == Expression("IsNotNull", a.children) or b in _strict(a.children[0], b)):
        return True
    same = a.kind == b.kind == "EqualTo" and a.children[0] == b.children[0]
    values = (literal(a.children[1]), literal(b.children[1])) if same else (None, None)
    return None not in values and values[0] != values[1]


def _strict(inner: Expression, condition: Expression) -> tuple[Expression, ...]:
    """The condition itself, if it can't hold where ``inner`` is NULL."""
    compares = condition.kind in (
        "EqualTo",
        "GreaterThan",
        "LessThan",
        "GreaterThanOrEqual",
        "LessThanOrEqual",
    )
    return (condition,) if compares and inner in condition.children else ()


def complete(one: Piece, other: Piece) -> bool:
    """Tells whether each row of the old table is in one of two pieces, unless a condition is NULL of it."""
    if len(one.conditions) != 1 or len(other.conditions) != 1 or not (one.whole and other.whole):
        return False
    [a], [b] = one.conditions, other.conditions
    null = {a.kind, b.kind} == {"IsNull", "IsNotNull"} and a.children == b.children
    return null or a == Expression("Not", (b,)) or b == Expression("Not", (a,))
