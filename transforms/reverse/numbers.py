"""Arithmetic turned round: sums, products and rounding of one exact number, where its steps stay apart. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from transforms.analysis.expressions import Expression
from transforms.reverse.texts import (
    constant,
    decimal_of,
    is_number,
    number_literal,
    simple,
    type_of,
    whole_digits,
)

_KINDS = frozenset({"Add", "Subtract", "Multiply", "Divide", "Round", "UnaryMinus"})
_MOST_DIGITS = 10
_DIVIDED = Fraction(1, 10**6)
"""Spark's quotients of decimals have six digits after the point or more."""

Steps = Callable[[Expression], object]
"""Tells the step between two values of a column; something else than a ``Fraction`` where it has none."""


@dataclass(frozen=True, slots=True)
class Blur:
    """The amount by which a value may be off, at most."""

    amount: Fraction = Fraction(0)

    def more(self, amount: Fraction) -> Blur:
        """Off by more."""
        return Blur(self.amount + amount)

    def scaled(self, factor: Fraction) -> Blur:
        """The blur of a value times ``factor``."""
        return Blur(self.amount * abs(factor))


SHARP = Blur()


def step_of(kind: str) -> Fraction | None:
    """The step between neighbouring values of a type; None of types that aren't exact numbers."""
    found = decimal_of(kind)
    if found:
        return Fraction(1, 10 ** found[1])
    return Fraction(1) if whole_digits(kind) else None


def is_step(one: Expression) -> bool:
    """Tells whether an expression is arithmetic on exact numbers: also a cast from one kind of them to another."""
    if one.kind == "Cast" and is_number(simple(one.type)):
        inner = type_of(one.children[0])
        return is_number(inner) or one.children[0].kind in _KINDS
    return one.kind in _KINDS


def undone(one: Expression, code: str, blur: Blur, steps: Steps) -> tuple[Expression, str, Blur] | str:
    """The value under the outermost step of arithmetic: its expression, code and blur; else why there is none."""
    if one.kind == "UnaryMinus":
        return one.children[0], f"(-{code})", blur
    if one.kind in ("Cast", "Round"):
        return _rounded(one, code, blur, steps)
    first, second = one.children
    if one.kind == "Divide":
        first, second = _without_double(first), _without_double(second)
    if constant(first) is not None and one.kind in ("Add", "Multiply"):
        first, second = second, first
    number = constant(second)
    written = None if number is None else number_literal(number)
    if number is None or written is None:
        return f"{one.kind.lower()} takes several values together"
    if "double" in (type_of(first), type_of(second)) or "float" in (type_of(first), type_of(second)):
        return "floating-point numbers are rounded"
    if one.kind == "Add":
        return first, f"({code} - {written})", blur
    if one.kind == "Subtract":
        return first, f"({code} + {written})", blur
    if number == 0:
        return "it is multiplied by 0"
    if one.kind == "Divide":
        return first, f"({code} * {written})", blur.more(_DIVIDED).scaled(number)
    exact = (1 / number).denominator in _POWERS or number in _POWERS
    less = blur.scaled(1 / number)
    return first, f"({code} / {written})", less if exact and not blur.amount else less.more(_DIVIDED)


_POWERS = frozenset(10**digits for digits in range(7))


def sharpened(code: str, blur: Blur, kind: str) -> str | None:
    """The value of a column from one that is off by less than half its step; None where it may be another one."""
    step = step_of(kind)
    if step is None or blur.amount + _DIVIDED >= step / 2:
        return None
    found = decimal_of(kind)
    bare = code[1:-1] if code.startswith("(") and code.endswith(")") else code
    return f"F.round({bare}, {found[1] if found else 0})"


def _rounded(one: Expression, code: str, blur: Blur, steps: Steps) -> tuple[Expression, str, Blur] | str:
    inner = one.children[0]
    if one.kind == "Round":
        digits = constant(one.children[1])
        if digits is None or digits.denominator != 1:
            return "it is rounded to another number of digits in each row"
        unit = Fraction(1, 10 ** int(digits)) if digits >= 0 else Fraction(10 ** -int(digits))
        cut = Fraction(1, 2)
    else:
        kind = simple(one.type)
        found = step_of(kind)
        assert found is not None
        unit, cut = found, Fraction(1, 2) if decimal_of(kind) else Fraction(1)
    step = _grid(inner, steps)
    if step is not None and (step / unit).denominator == 1:
        return inner, code, blur
    return inner, code, blur.more(unit * cut)


def _without_double(one: Expression) -> Expression:
    """A whole number that is divided as a double: one of 32 bits keeps its value, and the quotient's first digits."""
    inner = one.children[0] if one.children else one
    exact = inner.kind == "Literal" or (whole_digits(type_of(inner)) or _MOST_DIGITS + 1) <= _MOST_DIGITS
    return inner if one.kind == "Cast" and simple(one.type) == "double" and exact else one


def _grid(one: Expression, steps: Steps) -> Fraction | None:
    """A number of which every value of the expression is a multiple; None where none is known."""
    if one.kind == "AttributeReference":
        found = steps(one)
        return found if isinstance(found, Fraction) else None
    number = constant(one)
    if number is not None:
        return abs(number)
    if one.kind in ("Cast", "Round", "ExactCast"):
        inner = _grid(one.children[0], steps)
        if one.kind == "Round":
            digits = constant(one.children[1])
            unit = None if digits is None else Fraction(10) ** -int(digits)
        else:
            unit = step_of(simple(one.type))
        return inner if inner and unit and (inner / unit).denominator == 1 else unit
    if one.kind in ("Typed", "UnaryMinus", "Coalesce", "NullIf"):
        return _grid(one.children[0], steps)
    if one.kind == "CaseWhen" and len(one.children) <= 3:
        return _grid(one.children[1], steps)
    if one.kind == "Divide":  # off by so little that rounding to its grid mends it
        number, inner = (
            constant(_without_double(one.children[1])),
            _grid(_without_double(one.children[0]), steps),
        )
        return abs(inner / number) if number and inner else None
    if one.kind not in ("Add", "Subtract", "Multiply"):
        return None
    first, second = (_grid(child, steps) for child in one.children)
    if not first or not second:
        return first if second == 0 else second if first == 0 else None
    if one.kind == "Multiply":
        return first * second
    common = math.lcm(first.denominator, second.denominator)
    return Fraction(math.gcd(int(first * common), int(second * common)), common)
