"""Which rules of a target column the values of a source column may break, by the source column's type."""

from __future__ import annotations

from decimal import Decimal

import pytest

from migrator.adapters.sources.postgres.chunks.text_sets import missing_letters
from migrator.model.fit import Limit, Rule, doubts
from migrator.model.table import Column


def column(kind: str, declared: str, nullable: bool = False, collation: str = "") -> Column:
    return Column("c", kind, nullable, declared, collation)


NONE = Rule(Limit.NO_NULL)
THREE = Rule(Limit.CHARACTERS, (3,))
WIDE = Rule(Limit.CHARACTERS, (11,))
OCTETS = Rule(Limit.OCTETS, (255,))
BYTE = Rule(Limit.RANGE, (0, 255))
CENTS = Rule(Limit.SCALE, (2,))
AMOUNT = Rule(Limit.RANGE, (Decimal("-999.99"), Decimal("999.99")))
WHOLE_SECONDS = Rule(Limit.SECONDS, (0,))
COLORS = Rule(Limit.MEMBERS, ("red", "it's"))
LATIN = Rule(Limit.LETTERS, ("latin1",))
WIDTH = Rule(Limit.WIDTH, (16,))
BITS = Rule(Limit.WIDTH, (1,))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (column("string", "character varying(3)"), THREE),
        (column("string", "char(2)", collation="utf8mb4_bin"), THREE),
        (column("int16", "smallint"), WIDE),
        (column("string", "varchar(60)", collation="utf8mb4_general_ci"), OCTETS),
        (column("string", "tinytext", collation="utf8mb4_general_ci"), OCTETS),
        (column("binary", "varbinary(255)"), OCTETS),
        (column("binary", "tinyblob"), OCTETS),
        (column("int16", "tinyint unsigned"), BYTE),
        (column("decimal(2,0)", "decimal(2,0) unsigned"), BYTE),
        (column("decimal(5,2)", "numeric(5,2)"), AMOUNT),
        (column("decimal(5,2)", "numeric(5,2)"), CENTS),
        (column("int32", "integer"), CENTS),
        (column("timestamp", "timestamp(0) without time zone"), WHOLE_SECONDS),
        (column("string", "time"), WHOLE_SECONDS),
        (column("string", "enum('red','it''s')"), COLORS),
        (column("string", "varchar(5)", collation="latin1_swedish_ci"), LATIN),
        (column("string", "varchar(5)", collation="ascii_bin"), LATIN),
        (column("binary", "binary(16)"), WIDTH),
        (column("binary", "bit(8)"), BITS),
        (column("string", "uuid"), Rule(Limit.UUID)),
        (column("string", "jsonb"), Rule(Limit.JSON)),
        (column("binary", "bytea"), THREE),
        (column("binary", "bytea"), Rule(Limit.NO_ZERO)),
        (column("int32", "integer"), Rule(Limit.FINITE)),
        (column("string", "text"), NONE),
    ],
)
def test_what_a_type_keeps_by_itself_is_not_asked(given: Column, rule: Rule) -> None:
    assert doubts(given, [rule]) == ()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (column("string", "character varying(4)"), THREE),
        (column("string", "text"), THREE),
        (column("int32", "integer"), THREE),
        (column("string", "numeric"), WIDE),
        (column("string", "text", collation="de_DE"), OCTETS),
        (column("string", "varchar(64)", collation="utf8mb4_general_ci"), OCTETS),
        (column("binary", "blob"), OCTETS),
        (column("int16", "tinyint"), BYTE),
        (column("int16", "smallint"), BYTE),
        (column("int64", "int unsigned"), Rule(Limit.RANGE, (-(2**31), 2**31 - 1))),
        (column("decimal(20,0)", "bigint unsigned"), Rule(Limit.RANGE, (-(2**63), 2**63 - 1))),
        (column("decimal(6,2)", "numeric(6,2)"), AMOUNT),
        (column("decimal(5,3)", "numeric(5,3)"), CENTS),
        (column("float64", "double precision"), CENTS),
        (column("float64", "double precision"), Rule(Limit.FINITE)),
        (column("timestamp", "timestamp without time zone"), WHOLE_SECONDS),
        (column("string", "time without time zone"), WHOLE_SECONDS),
        (column("string", "time(1)"), WHOLE_SECONDS),
        (column("string", "enum('red','blue')"), COLORS),
        (column("string", "text"), COLORS),
        (column("string", "varchar(5)", collation="utf8mb4_bin"), LATIN),
        (column("string", "text"), LATIN),
        (column("binary", "binary(15)"), WIDTH),
        (column("binary", "bytea"), WIDTH),
        (column("binary", "bit(9)"), BITS),
        (column("string", "text"), Rule(Limit.UUID)),
        (column("string", "text", nullable=True), NONE),
        (
            column("timestamptz", "timestamp with time zone"),
            Rule(Limit.MOMENTS, ("1970-01-01", "2038-01-19")),
        ),
        (column("date", "date"), Rule(Limit.MOMENTS, ("0001-01-01", "9999-12-31"))),
    ],
)
def test_what_a_type_may_break_is_asked(given: Column, rule: Rule) -> None:
    assert doubts(given, [rule]) == (rule,)


def test_letters_that_a_character_set_lacks() -> None:
    assert missing_letters("ascii", r"\u{:04x}", r"\U{:08x}") == r"[^\u0001-\u007f]"
    assert missing_letters("utf8mb3", r"\u{:04x}", r"\U{:08x}") == r"[\U00010000-\U0010ffff]"
    latin = missing_letters("latin1", r"\u{:04x}", r"\U{:08x}")
    assert r"\u00a0-\u00ff" in latin
    assert r"\u20ac" in latin
    assert missing_letters("sjis", r"\u{:04x}", r"\U{:08x}") == r"[^\u0001-\u007f]"
