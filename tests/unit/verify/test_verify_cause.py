"""What likely causes of an unequal cell are called."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verify.report.display import shown
from verify.tables.findings.cause import likely_cause


@pytest.mark.parametrize(
    ("kind", "mapped", "target", "cause"),
    [
        ("integer", "9007199254740993", "9007199254740992", "precision: digits lost in a 64-bit float"),
        ("integer", "10", "9", "off by one"),
        ("integer", "41", "42", "off by one"),
        ("numeric", "41", "42", "off by one"),
        ("integer", "5", "-5", "sign"),
        ("numeric", "0." + "0" * 40 + "1", "0." + "0" * 40 + "2", "one unit in the last place"),
        ("numeric", "1" * 60, "1" * 59 + "3", "another value"),
        ("numeric", "1.2345", "1.23", "scale: digits cut off"),
        ("numeric", "not exactly 0.1", "0.1", "the mapped value does not fit the column's type"),
        ("numeric", "NaN", "1", "NaN or infinity on one side"),
        ("float8", "-0.0", "0.0", "sign of zero"),
        ("date", "100", "99", "one day"),
        ("timestamptz", "0", "1", "one microsecond"),
        ("timestamp", "0", "7200000000", "2 h apart: a time zone"),
        ("text", None, "", "empty text against NULL in the mapped row"),
        ("text", "", None, "empty text against NULL in the target"),
        ("float8", "NaN", None, "NaN against NULL in the target"),
        ("text", "a", None, "NULL in the target"),
        ("text", "a ", "a", "whitespace at an end"),
        ("text", "a  b", "a b", "whitespace"),
        ("text", "Straße", "STRASSE", "upper and lower case"),
        ("text", "e\u0301", "é", "Unicode form of the same characters"),
        ("text", "abcdef", "abc", "cut off after 3 characters"),
        ("text", "Dvořák", "Dvo?ák", "characters lost in an encoding"),
        ("numeric", "1.231", "1.23", "scale: digits cut off"),
        ("numeric", "1.9996", "2", "scale: rounded"),
        ("numeric", "2.5", "2", "scale: digits cut off"),
        ("numeric", "0.125", "0.12", "scale: digits cut off"),
        ("numeric", "-0.135", "-0.14", "scale: rounded"),
        ("numeric", "1.5", "1.55", "another value"),
        (
            "numeric",
            "12345678901234567890.1",
            "12345678901234567000",
            "precision: digits lost in a 64-bit float",
        ),
        ("numeric", "1" + "0" * 400, "1", "another value"),
        ("float8", "0.1", "0.10000000149011612", "precision: a 32-bit float"),
        ("float8", "1e308", "2", "another value"),
        ("float8", "1.5", "-1.5", "sign"),
        ("timestamptz", "19800000000", "0", "5.5 h apart: a time zone"),
        ("timestamp", "-20700000000", "0", "5.75 h apart: a time zone"),
        ("timestamp", "1234567", "1000000", "scale: only seconds were kept"),
        ("timestamp", "1234567", "1235000", "scale: only milliseconds were kept"),
        ("timestamp", "45296000001", "0", "the time of day is missing"),
        ("text", "a", "", "empty text in the target"),
        ("text", " A  b", "a B", "upper and lower case, and whitespace"),
        ("text", "Größe 1€", "GrÃ¶ÃŸe 1â‚¬", "encoding: UTF-8 read as Latin-1 in the target"),
        ("text", "Größe", "Gr\xc3\xb6\xc3\x9fe", "encoding: UTF-8 read as Latin-1 in the target"),
        ("text", "à", "ÃƒÂ\xa0", "encoding: UTF-8 read as Latin-1 in the target"),
        ("text", "\u30c1", "ãƒ\x81", "encoding: UTF-8 read as Latin-1 in the target"),
        ("text", "Ã±", "ñ", "encoding: UTF-8 read as Latin-1 in the mapped row"),
        ("text", "1.50", "1.5", "type: the same value, written as another type"),
        ("text", "true", "1", "type: the same value, written as another type"),
        ("text", "2024-01-31", "2024-01-31 00:00:00", "type: the same value, written as another type"),
        ("text", "2024-01-31", "2024-01-31 00:00:01", "another value"),
        ("text", "sNaN", "1", "another value"),
        ("bytea", "0100", "01", "zero bytes at the end"),
        ("bytea", "10", "1000", "zero bytes at the end"),
        ("bytea", "0102", "01", "cut off after 1 bytes"),
        ("bytea", "01", "", "no bytes in the target"),
        ("bytea", "ab", "6162", "type: hexadecimal text in place of the bytes"),
        ("bytea", "ab", "cd", "another value"),
        (
            "json",
            '{"a":[1,null]}',
            '{"a":["1",null]}',
            "type: a number, truth value or null became text, or the reverse",
        ),
        ("json", '{"a":1}', '"{\\"a\\":1}"', "type: the document became one text"),
        ("json", '{"a":1}', '{"a":2}', "another value"),
        ("json", "[" * 100_000, "1", "another value"),
        ("uuid", "a", "b", "another value"),
    ],
)
def test_likely_cause(kind: str, mapped: str | None, target: str | None, cause: str) -> None:
    assert likely_cause(kind, mapped, target) == cause


def test_a_number_of_many_digits_is_told_at_once() -> None:
    """PostgreSQL keeps 16,383 digits after the point, and ten thousand rows are explained."""
    long = "1." + "3" * 16_000
    assert likely_cause("numeric", long, long[:-1]) == "scale: digits cut off"
    assert likely_cause("numeric", long, "1" * 16_000) == "another value"


NUMBERS = st.from_regex(r"-?\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,25})?", fullmatch=True)
ODD = st.sampled_from(
    ["NaN", "sNaN", "-Infinity", "infinity", "", "1e99999999999999999999", "9" * 20_000, "not exactly 1"]
)
KINDS = ("integer", "numeric", "float4", "float8", "double", "float", "date", "timestamp", "timestamptz", "text",
         "json", "character", "bytea", "time", "uuid", "boolean")  # fmt: skip


@given(st.sampled_from(KINDS), st.one_of(NUMBERS, ODD, st.text()), st.one_of(NUMBERS, ODD, st.text()))
@example("timestamp", "1e99999999", "1")
def test_a_cause_is_told_of_any_two_texts(kind: str, mapped: str, target: str) -> None:
    """The hint is a hint: no value ends a verification because of it."""
    assert likely_cause(kind, mapped, target)
    shown(kind, mapped)
