"""What depends on a column's type alone is left out of an expression; nothing else is."""

from __future__ import annotations

import pytest

from transforms.analysis.expressions import Expression, folded


def column(type_: str) -> Expression:
    return Expression("AttributeReference", type=type_, column=0)


def text(value: str | None) -> Expression:
    return Expression("Literal", type="string", value=value)


def asks(kind: str, type_: str, value: str | None) -> Expression:
    return folded(Expression(kind, (Expression("TypeOf", (column(type_),)), text(value))))


ONE, OTHER, REST = text("one"), text("other"), text("rest")
OPEN = Expression("IsNull", (column("string"),))


@pytest.mark.parametrize(
    ("kind", "type_", "value", "known"),
    [
        ("EqualTo", "string", "string", "true"),
        ("EqualTo", "long", "string", "false"),
        ("RLike", "decimal(38,21)", r"^decimal\(\d+,(2[1-9]|3\d)\)$", "true"),
        ("RLike", "decimal(38,20)", r"^decimal\(\d+,(2[1-9]|3\d)\)$", "false"),
    ],
)
def test_a_condition_on_a_known_type_is_known(kind: str, type_: str, value: str, known: str) -> None:
    assert asks(kind, type_, value) == Expression("Literal", type="boolean", value=known)


def test_what_is_not_known_stays() -> None:
    assert asks("EqualTo", "", "string").kind == "EqualTo", "an expression whose type isn't said"
    assert asks("EqualTo", "string", None).kind == "EqualTo"
    same = Expression("EqualTo", (text("a"), text("a")))
    assert folded(same) is same, "a user's own literals"


def test_cases_of_other_types_are_left_out() -> None:
    no, yes = asks("EqualTo", "long", "string"), asks("EqualTo", "string", "string")

    def case(*children: Expression) -> Expression:
        return folded(Expression("CaseWhen", children))

    assert case(no, ONE, REST) == REST
    assert case(yes, ONE, REST) == ONE
    assert case(no, ONE, OPEN, OTHER, REST) == Expression("CaseWhen", (OPEN, OTHER, REST))
    assert case(OPEN, ONE, yes, OTHER, REST) == Expression("CaseWhen", (OPEN, ONE, OTHER))
    assert case(OPEN, ONE) == Expression("CaseWhen", (OPEN, ONE))
