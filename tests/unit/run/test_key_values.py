"""Which keys of a target tell the keys of a source, and the values that a source is asked for."""

from __future__ import annotations

import pytest

from migrator.model.event import Value
from migrator.model.table import Column
from migrator.model.target import TargetColumn
from migrator.run.commands.key_values import alike, source_value


def old(type_name: str, declared: str = "", collation: str = "") -> Column:
    return Column("id", type_name, False, declared or type_name, collation)


def new(spark: str, native: str = "", collation: str = "") -> TargetColumn:
    return TargetColumn("id", spark, native or spark, False, False, False, collation)


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("int64", "bigint", True),
        ("decimal(20,0)", "decimal(20,0)", True),
        ("decimal(20,0)", "bigint", True),
        ("int64", "decimal(20,0)", True),
        ("decimal(12,2)", "decimal(12,2)", True),
        ("decimal(12,2)", "decimal(14,4)", True),
        ("decimal(12,2)", "decimal(12,1)", False),  # 1.25 and 1.3 become one key
        ("decimal(12,2)", "bigint", False),
        ("decimal(12,2)", "double", False),
        ("int64", "string", False),
        ("float64", "double", False),
    ],
)
def test_exact_numbers_tell_the_source_s_key_unless_decimals_are_lost(
    source: str, target: str, told: bool
) -> None:
    assert alike(old(source), new(target)) is told


CI, BIN = "utf8mb4_general_ci", "utf8mb4_bin"
PLAIN, ZONED = "timestamp without time zone", "timestamp with time zone"
MILLI = "timestamp(3) without time zone"


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        (old("string", "text"), new("string", "character varying(20)"), True),
        (old("string", "varchar(20)", CI), new("string", "text"), True),  # the source takes more for one
        (old("string", "text"), new("string", "varchar(20)", CI), False),  # 'A' is looked up by 'a'
        (old("string", "varchar(20)", BIN), new("string", "varchar(20)", CI), False),
        (old("string", "varchar(20)", CI), new("string", "varchar(40)", CI), True),
        (old("string", "text", "ndci"), new("string", "text", '"public"."ndci"'), False),
        (old("string", "character(8)"), new("string", "character(12)"), True),
        (old("string", "text"), new("string", "character(12)"), False),  # 'a' and 'a ' become one
        (old("string", "character(12)"), new("string", "text"), True),
        (old("string", "citext"), new("string", "text"), True),
        (old("string", "text"), new("string", "citext"), False),
        (old("string", "uuid"), new("string", "uuid"), True),
        (old("string", "uuid"), new("string", "char(36)", CI), True),
        (old("string", "text"), new("string", "uuid"), False),  # capitals and braces become one
        (old("string", "jsonb"), new("string", "text"), False),
        (old("string", "enum('a')"), new("string", "text"), False),
    ],
)
def test_texts_tell_the_key_where_the_source_takes_for_one_what_the_target_does(
    source: Column, target: TargetColumn, told: bool
) -> None:
    assert alike(source, target) is told


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        (old("date"), new("date"), True),
        (old("date"), new("timestamp_ntz", PLAIN), False),
        (old("timestamp", MILLI), new("timestamp_ntz", PLAIN), True),
        (old("timestamp", PLAIN), new("timestamp_ntz", MILLI), False),
        (old("timestamp", PLAIN), new("timestamp_ntz", "datetime"), False),
        (old("timestamp", "timestamp(0) without time zone"), new("timestamp_ntz", "datetime"), True),
        (old("timestamptz", ZONED), new("timestamp", ZONED), True),
        (old("timestamptz", ZONED), new("timestamp_ntz", "datetime(6)"), False),
        (old("string", "date"), new("date"), True),
        (old("string", "datetime(6)"), new("timestamp_ntz", "datetime(6)"), True),
        (old("string", "timestamp"), new("timestamp", ZONED), True),
        (old("string", "timestamp"), new("timestamp_ntz", "datetime"), False),
        (old("string", "time"), new("string", "time"), False),
    ],
)  # fmt: skip
def test_moments_tell_the_key_unless_digits_are_lost(
    source: Column, target: TargetColumn, told: bool
) -> None:
    assert alike(source, target) is told


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("bytea", "bytea", True),
        ("binary(5)", "varbinary(5)", True),
        ("binary(5)", "binary(5)", True),
        ("varbinary(5)", "binary(5)", False),  # zeros at the end don't count any more
        ("binary(4)", "binary(5)", False),
        ("blob", "bytea", True),
    ],
)
def test_bytes_tell_the_key_unless_they_are_padded(source: str, target: str, told: bool) -> None:
    assert alike(old("binary", source), new("binary", target)) is told


@pytest.mark.parametrize(
    ("source", "text", "value"),
    [
        (old("binary", "bytea"), "00ff", b"\0\xff"),
        (old("binary", "bytea"), "\\x00ff", b"\0\xff"),
        (old("binary", "bytea"), "", b""),
        (old("binary", "bytea"), "0f0", None),
        (old("date"), "2026-01-31", "2026-01-31"),
        (old("date"), "infinity", None),
        (old("date"), "2932897", None),  # days since 1970, beyond what Python prints
        (old("date"), "2026-01-31 12:00:00", None),
        (old("timestamp"), "2026-01-31 12:00:00.5", "2026-01-31 12:00:00.5"),
        (old("timestamp"), "2026-01-31", None),
        (old("timestamp"), "31.1.2026 12:00:00", None),
        (old("timestamptz"), "2026-01-31 12:00:00Z", "2026-01-31 12:00:00+00"),
        (old("timestamptz"), "2026-01-31 12:00:00+00", "2026-01-31 12:00:00+00"),
        (old("timestamptz"), "2026-01-31 12:00:00+02", None),
        (old("string", "timestamp"), "2026-01-31 12:00:00Z", "2026-01-31 12:00:00"),
        (old("string", "text"), "Z", "Z"),
        (old("string", "text"), "a\0b", None),
        (old("int64"), "7", "7"),
    ],
)
def test_the_source_is_asked_for_what_the_text_stands_for(
    source: Column, text: str, value: Value | None
) -> None:
    assert source_value(source, text) == value
