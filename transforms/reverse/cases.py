"""Conditions and what they give, in forward expressions: ``CASE`` as a list, and what a condition asks. Pure."""

from __future__ import annotations

from transforms.analysis.expressions import Expression
from transforms.reverse.texts import literal, type_of


def cases(one: Expression) -> tuple[list[tuple[Expression, Expression]], Expression | None]:
    """Conditions with what they give, nested ones in a row, and what all others give."""
    if one.kind == "If":
        condition, result, other = one.children
        pairs, rest = [(condition, result)], other
    else:
        below = one.children
        pairs = list(zip(below[::2], below[1::2], strict=False))
        rest_or_none = below[-1] if len(below) % 2 else None
        if rest_or_none is None:
            return pairs, None
        rest = rest_or_none
    inner = rest
    while inner.kind in ("Cast", "Typed") and inner.children[0].kind in ("CaseWhen", "If"):
        inner = inner.children[0]
    if inner.kind in ("CaseWhen", "If"):
        more, last = cases(inner)
        return [*pairs, *more], last
    return pairs, None if literal(rest) == "None" else rest


def test(condition: Expression) -> tuple[Expression | None, str | None]:
    """The value that a condition asks for, and the literal that it must be; a boolean stands for itself."""
    if condition.kind == "EqualTo":
        first, other = condition.children
        if literal(first) is not None:
            first, other = other, first
        return first, literal(other)
    if condition.kind == "Not":
        inner, truth = test(condition.children[0])
        opposite = {"True": "False", "False": "True"}.get(truth or "")
        return (
            (inner, opposite)
            if opposite and inner is not None and type_of(inner) == "boolean"
            else (None, None)
        )
    if condition.kind == "AttributeReference" and type_of(condition) == "boolean":
        return condition, "True"
    return None, None


def raises(one: Expression) -> bool:
    """Tells whether an expression is no value, but an error."""
    while one.kind in ("Cast", "Typed"):
        one = one.children[0]
    return one.kind == "RaiseError"


def compared(code: str, new: str) -> str:
    """The condition that a value is a literal."""
    if new in ("True", "False"):
        return code if new == "True" else f"~{code}"
    return f"{code} == {new}"
