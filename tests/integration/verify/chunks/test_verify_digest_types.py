"""Digests of values that change their type on the way: alike where the values are, told apart where they differ."""

from __future__ import annotations

import pytest

from tests.integration.verify.chunks.test_verify_digest import Content, digests, numbers
from tests.servers import Database

pytestmark = pytest.mark.integration

FLOATING = {
    "double": [
        *(
            "NULL",
            "0",
            "1",
            "-1",
            "0.1",
            "0.10000000000000002",
            "1e15",
            "123456789012345678",
            "1e16",
            "1e-5",
            "-1e-15",
        ),
        *(
            "5e-324",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "9007199254740992",
            "9007199254740993",
        ),
    ],
    "float": [
        "NULL",
        "0",
        "1",
        "-1",
        "0.1",
        "16777216",
        "16777217",
        "16777218",
        "1e-45",
        "3.40282e38",
        "1e6",
        "1e-6",
    ],
}
PRINTED = {
    ("char(36)", "uuid"): [
        "'0e984725-c51c-4bf4-9960-e1c80e27aba0'",
        "'0E984725-C51C-4BF4-9960-E1C80E27ABA1'",  # the same one as PostgreSQL prints it, in small letters
        "'0E984725C51C4BF49960e1c80e27aba2'",
    ],
    ("enum('a', 'b c', 'é')", "mood"): ["'a'", "'b c'", "'é'"],
    ("varchar(20) character set latin1", "mood"): ["'a'", "'é'"],
    ("set('a','b c')", "text"): ["''", "'a'", "'a,b c'"],
    ("set('a','b c')", "character varying(9)"): ["''", "'a'", "'a,b c'"],
    ("longtext", "json"): ['\'{"b":1, "a": [1.50, "é"]}\'', "'[]'", f"'\"{'x' * 300}\"'"],
    ("varchar(20)", "inet"): ["'192.0.2.1'", "'192.0.2.0/24'"],
    ("char(2)", "character(2)"): ["'de'", "'d'", "''"],
    ("year", "smallint"): ["0", "1901", "2024"],
    ("time", "time without time zone"): ["'00:00:00'", "'23:59:59'", "'10:00:00'"],
    ("time(6)", "time without time zone"): ["'00:00:00'", "'23:59:59.999999'", "'12:00:00.5'"],
    ("datetime(6)", "text"): ["'2024-02-29 12:00:00.500000'", "'1000-01-01 00:00:00.000000'"],
    ("date", "character varying(10)"): ["'2024-02-29'"],
}
"""By types of the source and of PostgreSQL, values that are the same on both, however they are written."""


@pytest.mark.parametrize("native", FLOATING)
def test_floating_point_is_the_same_bits_on_both_engines(
    old_pg: Database, old_binlog: Database, native: str
) -> None:
    """Very large and very small ones too, which the servers write in different ways."""
    new = {"double": "double precision", "float": "real"}[native]
    made = numbers((old_binlog.kind, "postgresql"), [("int", "integer"), (native, new)])
    for value in FLOATING[native]:
        content: list[Content] = [[("0", value)]]
        old = digests(old_binlog, ["int", native], made.source, content)
        assert old == digests(old_pg, ["integer", new], made.target, content), value
    every: list[Content] = [[("0", value)] for value in FLOATING[native]]
    different = digests(old_pg, ["integer", new], made.target, every)
    assert len(different) == len(every) - 1  # 2^53 + 1 and 2^24 + 1 are nobody's numbers


def test_the_sign_of_zero_that_mysql_keeps_is_seen(old_pg: Database, old_mysql: Database) -> None:
    made = numbers(("mysql", "postgresql"), [("int", "integer"), ("double", "double precision")])
    both: list[Content] = [[("0", "-0e0")], [("0", "0e0")]]
    found = [
        digests(old_mysql, ["int", "double"], made.source, both),
        digests(old_pg, ["integer", "double precision"], made.target, [[("0", "'-0'")], [("0", "0")]]),
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 2


@pytest.mark.each_value
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("old", "new"), PRINTED)
def test_what_is_handed_on_as_a_text_agrees_if_it_is_printed_alike(
    old_pg: Database, old_binlog: Database, old: str, new: str, nullable: bool
) -> None:
    old_pg.execute("CREATE TYPE mood AS ENUM ('a', 'b c', 'é')")
    values = [*PRINTED[old, new], *(["NULL"] if nullable else [])]
    made = numbers((old_binlog.kind, "postgresql"), [("int", "integer"), (old, new)], nullable)
    for value in values:
        content: list[Content] = [[("0", value)]]
        found = digests(old_binlog, ["int", old], made.source, content)
        assert found == digests(old_pg, ["integer", new], made.target, content), value
    every: list[Content] = [[("0", value)] for value in values]
    assert len(digests(old_pg, ["integer", new], made.target, every)) == len(values)


def test_a_uuid_with_dashes_elsewhere_agrees_with_none(old_pg: Database) -> None:
    """No server reads it, so to the judge it is another text."""
    made = numbers(("postgresql", "postgresql"), [("integer", "integer"), ("text", "uuid")])
    odd: list[Content] = [
        [("0", "'0e98-4725c51c-4bf4-9960e-1c80e27aba0'")],
        [("0", "'-0e984725c51c4bf49960e1c80e27aba0'")],
    ]
    plain: list[Content] = [[("0", "'0e984725c51c4bf49960e1c80e27aba0'")]]
    found = digests(old_pg, ["integer", "uuid"], made.target, plain)
    assert found == digests(old_pg, ["integer", "text"], made.source, plain)
    assert not found & digests(old_pg, ["integer", "text"], made.source, odd)


def test_mysql_s_json_agrees_with_jsonb(old_pg: Database, old_mysql: Database) -> None:
    """Both put keys into one order, with one blank behind each comma."""
    made = numbers(("mysql", "postgresql"), [("int", "integer"), ("json", "jsonb")])
    written = '{"bb":1,"a":[true,null,"é"],   "b":{"x":-1.5}}'
    for value in ("NULL", "'null'", "'{}'", f"'{written}'", "'18446744073709551615'"):
        content: list[Content] = [[("0", value)]]
        old = digests(old_mysql, ["int", "json"], made.source, content)
        assert old == digests(old_pg, ["integer", "jsonb"], made.target, content), value


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("mood", "text", ["NULL", "'a'", "'b c'"]),
        ("text", "mood", ["NULL", "'a'", "'b c'"]),
        ("mood", "feeling", ["NULL", "'a'"]),
        ("character(8)", "text", ["NULL", "'a       '"]),
        ("inet", "character varying(9)", ["NULL", "'::1'"]),
        ("integer[]", "text", ["NULL", "'{1,2}'", "'{}'"]),
        (
            "text",
            "uuid",
            ["NULL", "'0e984725-c51c-4bf4-9960-e1c80e27aba0'", "'0E984725C51C4BF49960E1C80E27ABA1'"],
        ),
        ("text", "character(2)", ["NULL", "'ab'", "'a'"]),
        ("interval", "text", ["NULL", "'01:00:00'"]),
        ("json", "text", ["NULL", "'[1, 2]'"]),
    ],
)
def test_between_postgresqls_of_other_types(old_pg: Database, old: str, new: str, same: list[str]) -> None:
    old_pg.execute("CREATE TYPE mood AS ENUM ('a', 'b c')", "CREATE TYPE feeling AS ENUM ('b c', 'a')")
    for nullable in (True, False):
        made = numbers(("postgresql", "postgresql"), [("integer", "integer"), (old, new)], nullable)
        every: list[Content] = [[("0", value)] for value in same]
        found = digests(old_pg, ["integer", old], made.source, every)
        assert found == digests(old_pg, ["integer", new], made.target, every)
        assert len(found) == len(same)
