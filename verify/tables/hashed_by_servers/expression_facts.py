"""Facts about the values of an expression, true in whichever server's words it is put."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.model.table import Column
from transforms.analysis.expressions import Expression


def nullable(it: Expression, columns: Sequence[Column]) -> bool:
    """Returns whether NULL is to be expected. The answer isn't certain: the text of a refused row is NULL too."""
    if it.column is not None:
        return columns[it.column].nullable
    if it.kind in ("Literal", "RaiseError"):
        return it.kind == "Literal" and it.value is None
    if it.kind == "CaseWhen" and len(it.children) % 2 == 0:
        return True
    children = it.children[1::2] + it.children[-1:] if it.kind == "CaseWhen" else it.children
    return it.kind == "NullIf" or any(nullable(each, columns) for each in children)


def is_empty(it: Expression) -> bool:
    """Returns whether an expression is the empty text."""
    return it.kind == "Literal" and it.type == "string" and it.value == ""


def of_a_row(it: Expression) -> bool:
    """Returns whether an expression holds any column, so that it isn't one value for all rows."""
    return it.kind == "AttributeReference" or any(map(of_a_row, it.children))
