"""Spark's types of numbers: how many digits they hold, and which one a sum or a product has."""

from __future__ import annotations

import re

WHOLE = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}
"""Types of whole numbers, and the first number that each is too small for."""
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def is_number(type_: str) -> bool:
    """Returns whether a type is one of Spark's exact numbers."""
    return type_ in WHOLE or DECIMAL.fullmatch(type_) is not None


def digits(type_: str) -> tuple[int, int]:
    """Digits before and behind the point that a number's type holds at least; a whole number's are enough for
    any."""
    found = DECIMAL.fullmatch(type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else (len(str(WHOLE[type_])), 0)


def sure_digits(type_: str) -> int:
    """Returns the number of digits before the point that the type surely holds."""
    return len(str(WHOLE[type_])) - 1 if type_ in WHOLE else digits(type_)[0]


def result_type(kind: str, left: str, right: str) -> str | None:
    """Spark's type of a sum, a difference or a product; None where it isn't one of these."""
    if left in WHOLE and left == right:
        return left
    one, other = DECIMAL.fullmatch(left), DECIMAL.fullmatch(right)
    if one is None or other is None:
        return None
    sizes, scale = (int(one[1]), int(other[1])), (int(one[2]), int(other[2]))
    if kind == "Multiply":
        precision, behind = sum(sizes) + 1, sum(scale)
    else:
        behind = max(scale)
        precision = max(sizes[0] - scale[0], sizes[1] - scale[1]) + behind + 1
    if precision > 38:  # Spark gives up decimals then
        return None
    return f"decimal({precision},{behind})"
