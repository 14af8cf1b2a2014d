"""The statement that finds out which targets have rows."""

from __future__ import annotations

from migrator.adapters.targets.shared.identities import any_row


def test_it_begins_at_the_end_of_each_key() -> None:
    assert any_row([('"s"."t"', ['"a"', '"b"']), ('"s"."u"', ['"c"'])]) == (
        '(SELECT 0 FROM "s"."t" ORDER BY "a" DESC, "b" DESC LIMIT 1)'
        ' UNION ALL (SELECT 1 FROM "s"."u" ORDER BY "c" DESC LIMIT 1)'
    )


def test_without_a_key_any_row_will_do() -> None:
    assert any_row([("`s`.`t`", [])]) == "(SELECT 0 FROM `s`.`t` LIMIT 1)"


def test_what_is_told_of_the_row_comes_beside_its_place() -> None:
    assert (
        any_row([('"s"."t"', ['"a"'])], "ctid::text")
        == '(SELECT 0, ctid::text FROM "s"."t" ORDER BY "a" DESC LIMIT 1)'
    )
