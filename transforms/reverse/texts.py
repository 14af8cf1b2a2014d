"""Python source of literals, names and types, and forward expressions as people read them. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from transforms.analysis.expressions import Expression
from transforms.python_source import prose, text_literal
from transforms.reverse.pieces import FAR

_SIMPLE = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_SIGNS = {
    "EqualTo": "=", "Multiply": "*", "Divide": "/", "Add": "+", "Subtract": "-", "GreaterThan": ">", "LessThan": "<",
    "GreaterThanOrEqual": ">=", "LessThanOrEqual": "<=", "And": "and", "Or": "or", "Remainder": "%",
}  # fmt: skip
_WORDS = {"StringTrim": "trim", "StringTrimRight": "rtrim", "StringTrimLeft": "ltrim"}
_LONGEST = 90


def simple(kind: str) -> str:
    """A type as Spark SQL names it, from either of its two spellings."""
    return _SIMPLE.get(kind, kind).replace(" ", "")


def whole_digits(kind: str) -> int | None:
    """Digits of a type of whole numbers; None of another type."""
    return _WHOLE.get(kind)


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None of another type."""
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def is_number(kind: str) -> bool:
    """Tells whether a type's values are exact numbers."""
    return kind in _WHOLE or decimal_of(kind) is not None


def type_of(expression: Expression) -> str:
    """The Spark SQL type of a value, as far as the expression itself says; else empty."""
    if expression.kind in ("Typed", "ExactCast", "Cast", "AttributeReference", "Literal"):
        return simple(expression.type)
    if expression.kind in ("EqualTo", "Not", "In", "IsNull", "IsNotNull"):
        return "boolean"
    if expression.kind in ("Concat", "ConcatWs", "StringTrim", "StringTrimRight", "Lower", "Upper"):
        return "string"
    if expression.kind in ("Coalesce", "NullIf", "Try"):
        return next((found for one in expression.children if (found := type_of(one))), "")
    if expression.kind == "CaseWhen":
        return next((found for one in expression.children[1::2] if (found := type_of(one))), "")
    return ""


def constant(expression: Expression) -> Fraction | None:
    """The number that an expression is whatever the row; None where it isn't one."""
    if expression.kind in ("Cast", "ExactCast", "Typed"):
        return constant(expression.children[0]) if is_number(simple(expression.type)) else None
    if expression.kind != "Literal" or expression.value is None or not is_number(simple(expression.type)):
        return None
    return Fraction(expression.value)


def number_literal(value: Fraction) -> str | None:
    """An exact decimal as a column of Spark; None for a number that has no end as a decimal."""
    try:
        found = Decimal(value.numerator) / Decimal(value.denominator)
    except InvalidOperation:
        return None
    if Fraction(found) != value:
        return None
    return f"F.lit(Decimal({found:f}))" if value.denominator == 1 else f'F.lit(Decimal("{found:f}"))'


def literal(expression: Expression) -> str | None:
    """The Python value of a literal, as source; None for a type that isn't written so."""
    while expression.kind in ("ExactCast", "Typed", "Cast") and expression.children[0].kind in (
        "Literal", "ExactCast", "Typed", "Cast"
    ):  # fmt: skip
        expression = expression.children[0]
    kind, value = simple(expression.type), expression.value
    if expression.kind != "Literal":
        return None
    if value is None:
        return "None"
    if kind == "string":
        return text_literal(value)
    if kind == "boolean":
        return value.capitalize()
    if kind in _WHOLE:
        return value
    return f'Decimal("{value}")' if decimal_of(kind) else None


def shown(expression: Expression, names: tuple[str, ...]) -> str:
    """A forward expression in short, with the old columns' names: for a comment."""
    text = re.sub(r"\s+", " ", _shown(expression, names))
    text = prose(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _shown(expression: Expression, names: tuple[str, ...]) -> str:
    kind, children = expression.kind, expression.children
    below = [_shown(child, names) for child in children]
    if kind == "AttributeReference":
        place = expression.column or 0
        return names[place] if place < len(names) else "a column of another table" if place >= FAR else "?"
    if kind == "Literal":
        return "NULL" if expression.value is None else expression.value
    if kind in ("Typed", "Try", "ExactCast"):
        return below[0]
    if kind == "Cast":
        return f"cast({below[0]} as {simple(expression.type)})"
    if kind in _SIGNS and len(below) == 2:
        return f"{below[0]} {_SIGNS[kind]} {below[1]}"
    if kind == "CaseWhen":
        pairs = [f"when {a} then {b}" for a, b in zip(below[::2], below[1::2], strict=False)]
        return " ".join(["case", *pairs, *([f"else {below[-1]}"] if len(below) % 2 else [])])
    if kind in ("Unknown", "TooDeep"):
        return "what joins, groups or Python make"
    if kind in ("IsNull", "IsNotNull"):
        return f"{below[0]} is {'not ' if kind == 'IsNotNull' else ''}null"
    word = _WORDS.get(kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
    return f"{word}({', '.join(below)})"
