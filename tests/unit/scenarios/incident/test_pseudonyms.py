"""Pseudonyms keep what they promise of any values, and give no value away."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scenarios.chaos.incident.pseudonyms import ordered, plain
from scenarios.chaos.incident.pseudonyms.dice import Dice
from scenarios.chaos.incident.pseudonyms.letters import alphabet, folded

KEYS = st.binary(min_size=32, max_size=32)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WORDS = st.text("abcdefgABCDEFG0123 @.-éÉжЖ漢", min_size=1, max_size=20)
LONG = st.text("abcdefghijklmnopqrstuvwxyz", min_size=6, max_size=20)


def classes(text: str) -> list[tuple[str, ...]]:
    return [(*alphabet(folded(one)), str(folded(one) != one)) for one in text]


@given(st.characters(exclude_categories=["Cs"]))
def test_an_alphabet_is_the_same_for_all_its_members(character: str) -> None:
    letters = alphabet(folded(character))
    assert folded(character) in letters
    assert list(letters) == sorted(letters)
    assert {alphabet(one) for one in letters} == {letters}


@given(KEYS, st.lists(TEXT, max_size=12, unique=True))
@settings(deadline=None)
def test_texts_keep_length_classes_and_equality(key: bytes, texts: list[str]) -> None:
    found = plain.Texts(texts, (), (), Dice(key))
    new = [found.of(one) for one in texts]
    assert [found.of(one) for one in texts] == new
    assert len({*new}) == len(new)
    assert [classes(one) for one in new] == [classes(one) for one in texts]


@given(KEYS, st.lists(LONG, max_size=8, unique=True))
@settings(deadline=None)
def test_no_text_becomes_an_original(key: bytes, texts: list[str]) -> None:
    found = plain.Texts(texts, (), (), Dice(key))
    new = [found.of(one) for one in texts]
    assert not {*new} & {*texts}
    assert len({*new}) == len(texts)


@given(KEYS, WORDS)
@settings(deadline=None)
def test_what_mappings_do_with_texts_can_be_done_with_pseudonyms(key: bytes, text: str) -> None:
    found = plain.Texts([text], (), (), Dice(key))
    assert found.of(text.strip()) == found.of(text).strip()
    assert found.of(text.lower()) == found.of(text).lower()
    assert found.of(text.upper()) == found.of(text).upper()


@given(KEYS, st.lists(WORDS, max_size=15))
@settings(deadline=None)
def test_texts_of_keys_keep_their_order_in_either_collation(key: bytes, texts: list[str]) -> None:
    found = ordered.of_texts(texts, (), Dice(key))
    assert found.keys() == {*texts}
    assert sorted(texts) == sorted(texts, key=lambda one: found[one])
    assert [found[one] for one in sorted({*texts}, key=lambda one: (one.lower(), one))] == sorted(
        found.values(), key=lambda one: (one.lower(), one)
    )
    assert len({*found.values()}) == len(found)
    assert all(classes(old) == classes(new) for old, new in found.items())


@given(KEYS, st.sets(st.integers(-(10**9), 10**9), max_size=30), st.sets(st.integers(-50, 50), max_size=3))
@settings(deadline=None)
def test_numbers_of_keys_keep_order_side_and_what_code_mentions(
    key: bytes, numbers: set[int], kept: set[int]
) -> None:
    found = ordered.of_numbers(numbers, kept, (2**31 - 1,), Dice(key))
    assert found.keys() == numbers
    assert [found[one] for one in sorted(numbers)] == sorted(found.values())
    assert len({*found.values()}) == len(numbers)
    assert all((new > 0) == (old > 0) and (new == 0) == (old == 0) for old, new in found.items())
    assert all(found[one] == one for one in numbers & kept)
    assert all(-(2**31) <= one < 2**31 for one in found.values())


@given(KEYS, st.sets(st.integers(1, 10**7), min_size=1, max_size=20))
@settings(deadline=None)
def test_no_number_of_a_key_becomes_an_original(key: bytes, numbers: set[int]) -> None:
    found = ordered.of_numbers(numbers, (), (2**31 - 1, 2**63 - 1), Dice(key))
    assert not {*found.values()} & numbers


def test_numbers_stay_within_their_types_beside_much_larger_ones() -> None:
    small, large = [*range(1, 100)], [1_800_000_000_000_000_000 + n for n in range(50)]
    found = ordered.of_numbers([*small, *large, 2_000_000_001], (), (2**31 - 1, 2**63 - 1), Dice(b"k" * 32))
    assert max(found[one] for one in small) < 10_000
    assert 10**9 <= found[2_000_000_001] < 2**31
    assert all(10**18 <= found[one] < 2**63 for one in large)
    assert not {found[one] for one in large} & {*large}


def test_numbers_that_fill_their_type_stay_since_there_are_no_others() -> None:
    found = ordered.of_numbers(range(1, 128), (), (127,), Dice(b"k" * 32))
    assert found == {one: one for one in range(1, 128)}


@given(
    KEYS, st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=10**18, max_value=10**25)
)
def test_noise_of_many_digits_is_exact(key: bytes, value: Decimal) -> None:
    new = plain.number(format(value, "f"), (), Dice(key))
    assert len(new) == len(format(value, "f"))
    assert new[-1:] != ""


@given(KEYS, st.lists(st.binary(max_size=12), max_size=12, unique=True))
@settings(deadline=None)
def test_bytes_of_keys_keep_order_and_length(key: bytes, values: list[bytes]) -> None:
    found = ordered.of_bytes(values, Dice(key))
    assert [found[one] for one in sorted(values)] == sorted(found.values())
    assert all(len(old) == len(new) for old, new in found.items())


@given(KEYS, st.lists(st.uuids().map(str), max_size=12, unique=True))
@settings(deadline=None)
def test_uuids_stay_uuids_in_their_order(key: bytes, values: list[str]) -> None:
    found = ordered.of_uuids(values, Dice(key))
    assert [found[one] for one in sorted(values)] == sorted(found.values())
    assert all(len(one) == 36 and one[8] == one[13] == one[18] == one[23] == "-" for one in found.values())


@given(
    KEYS, st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9)
)
def test_noise_keeps_digits_sign_and_what_is_equal(key: bytes, value: Decimal) -> None:
    text = format(value, "f")
    new = plain.number(text, (), Dice(key))
    found = Decimal(new)
    assert (found > 0, found == 0) == (value > 0, value == 0)
    assert len(new) == len(text)
    assert plain.number(format(value.normalize(), "f"), (), Dice(key)) in (
        new,
        format(found.normalize(), "f"),
    ) or (not value or value.normalize().as_tuple().exponent != -2)
    assert abs(found - value) <= abs(value) / 3 + Decimal("0.02")
    if value and abs(value) >= 1:
        assert found != value


def test_what_code_mentions_stays_and_so_does_what_is_no_number() -> None:
    dice = Dice(b"k" * 32)
    assert plain.number("42", ("42",), dice) == "42"
    assert [plain.number(one, (), dice) for one in ("NaN", "Infinity", "0", "0.00", "x")] == [
        "NaN", "Infinity", "0", "0.00", "x",
    ]  # fmt: skip
    texts = plain.Texts(["active", "ACTIVE ", "ann@corp.example"], ["active"], ["@corp.example"], dice)
    assert texts.of("active") == "active"
    assert texts.of("ACTIVE ") == "ACTIVE "
    assert texts.of("ann@corp.example").endswith("@corp.example")
    assert not texts.of("ann@corp.example").startswith("ann@")


@given(KEYS, st.lists(st.dates().map(str), min_size=2, max_size=2), st.times().map(str))
@settings(deadline=None)
def test_days_move_together_and_keep_the_day_of_the_week(key: bytes, days: list[str], clock: str) -> None:
    assume(all(1100 < int(one[:4]) < 8900 for one in days))
    times = plain.Times(days, Dice(key))
    first, second = (date.fromisoformat(times.day(one)) for one in days)
    old_first, old_second = map(date.fromisoformat, days)
    assert second - first == old_second - old_first
    assert first.weekday() == old_first.weekday()
    assert first != old_first
    assert times.day(f"{days[0]} {clock}") == f"{first} {clock}"


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0000-00-00", "9999-12-31", "no date", ""])
def test_what_stands_for_no_day_stays(text: str) -> None:
    assert plain.Times([text], Dice(b"k" * 32)).day(text) == text


def test_a_document_keeps_its_shape() -> None:
    dice = Dice(b"k" * 32)
    texts = plain.Texts(["Catherine", "name"], ["name", "tags", "age"], (), dice)
    found = plain.document(
        '{"name": "Catherine", "age": 1234, "tags": [true, null, "Catherine"]}', texts, (), dice
    )
    document = json.loads(found)
    assert "Catherine" not in found
    assert document["name"] == document["tags"][2]
    assert document["tags"][:2] == [True, None]
    assert 1000 <= document["age"] <= 1999


def test_a_small_form_is_used_up_without_two_texts_becoming_one() -> None:
    found = plain.Texts([], (), (), Dice(b"k" * 32))
    assert len({found.of(one) for one in "abcdefghijklmnopqrstuvwxyz"}) == 26
