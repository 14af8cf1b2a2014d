"""CHECK conditions as servers print them, read as rules."""

from __future__ import annotations

from decimal import Decimal

import pytest

from migrator.adapters.targets.shared.conditions import rules_of
from migrator.model.fit import Limit

FAR = Decimal(10**40)
POSITIVE = (Decimal("0.000001"), FAR)


@pytest.mark.parametrize(
    ("condition", "column", "rules"),
    [
        ("CHECK ((amount > (0)::numeric))", "amount", [(Limit.RANGE, POSITIVE)]),
        ("CHECK ((VALUE > 0))", "VALUE", [(Limit.RANGE, POSITIVE)]),
        ("(`amount` > 0)", "amount", [(Limit.RANGE, POSITIVE)]),
        ("0 < `amount`", "amount", [(Limit.RANGE, POSITIVE)]),
        ('CHECK (("odd name" > 0)) NOT VALID', "odd name", [(Limit.RANGE, POSITIVE)]),
        (
            "CHECK (((a >= '-5'::integer) AND (a < 10)))",
            "a",
            [
                (Limit.RANGE, (Decimal(-5), FAR)),
                (Limit.RANGE, (FAR.copy_negate(), Decimal("9.999999"))),
            ],
        ),
        (
            "(`a` between -(3) and 10.5) and `a` <> 4",
            "a",
            [(Limit.RANGE, (Decimal(-3), Decimal("10.5")))],
        ),
        ("CHECK ((s = ANY (ARRAY['a'::text, 'it''s'::text])))", "s", [(Limit.MEMBERS, ("a", "it's"))]),
        (
            "CHECK (((s)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))",
            "s",
            [(Limit.MEMBERS, ("a", "b"))],
        ),
        (r"(`s` in (_utf8mb4\'a\',_utf8mb4\'b\'))", "s", [(Limit.MEMBERS, ("a", "b"))]),
        ("`s` in ('a','b')", "s", [(Limit.MEMBERS, ("a", "b"))]),
        ("CHECK ((s = 'new'::text))", "s", [(Limit.MEMBERS, ("new",))]),
        ("CHECK ((length((s)::text) < 5))", "s", [(Limit.CHARACTERS, (4,))]),
        ("(length(`s`) <= 5)", "s", [(Limit.OCTETS, (5,))]),
        ("(char_length(`s`) <= 5)", "s", [(Limit.CHARACTERS, (5,))]),
    ],
)
def test_what_is_read(condition: str, column: str, rules: list[tuple[Limit, tuple[object, ...]]]) -> None:
    assert [(rule.limit, rule.bounds) for rule in rules_of(condition, column)] == rules


@pytest.mark.parametrize(
    "condition",
    [
        "CHECK ((s <> 'x'::text))",
        "CHECK (((s > 0) OR (s IS NULL)))",
        "CHECK ((NOT (s > 0)))",
        "CHECK ((s > other))",
        "CHECK ((lower(s) = 'x'::text))",
        "CHECK ((s > (0 + 1)))",
        "CHECK (((s % 2) = 0))",
        "CHECK ((length(s) >= 5))",
        "CHECK ((s ~ '^a'::text))",
        "CHECK ((other > 0))",
        "(`s` > 0 and",
        "",
    ],
)
def test_what_is_of_another_kind_gives_no_rule(condition: str) -> None:
    assert rules_of(condition, "s") == ()


def test_bounds_are_printed_without_exponents() -> None:
    """MySQL compares with those as floating-point numbers: 1000 would be less than 1000."""
    (rule,) = rules_of("CHECK ((s < 1000))", "s")
    assert all("E" not in str(bound) for bound in (*rule.bounds, *POSITIVE))
