"""CHECK constraints: what is surely refused, what isn't known, and rows that are drawn by them."""

from __future__ import annotations

import random
from datetime import date

import pytest

from scenarios.rehearsal.constraints.conditions import of_table, read
from scenarios.rehearsal.constraints.patterns import drawn_from
from scenarios.rehearsal.rows import RowMaker
from scenarios.rehearsal.schema import as_written
from scenarios.rehearsal.tables import Column, Table

NAMES = ("sold", "bought", "rate", "status", "passed", "findings", "code", "lat")
CASES = (
    # as PostgreSQL prints them
    ("CHECK (((sold IS NULL) OR (sold >= bought)))", {"sold": "2020-01-01", "bought": "2020-01-02"}, True),
    ("CHECK (((sold IS NULL) OR (sold >= bought)))", {"sold": None, "bought": "2020-01-02"}, False),
    ("CHECK ((rate > (0)::numeric)) NOT VALID", {"rate": "0.00"}, True),
    ("CHECK ((rate > (0)::numeric))", {"rate": None}, False),
    (
        "CHECK (((lat >= ('-90'::integer)::double precision) AND (lat <= (90)::double precision)))",
        {"lat": "91.5"},
        True,
    ),
    ("CHECK ((status = ANY (ARRAY['N'::bpchar, 'C'::bpchar])))", {"status": "Z"}, True),
    ("CHECK (((status)::text = ANY ((ARRAY['N'::character varying])::text[])))", {"status": "N"}, False),
    ("CHECK ((passed OR (findings IS NOT NULL)))", {"passed": "false", "findings": None}, True),
    ("CHECK (((code)::text ~ '^[A-Z]{2}-[0-9]+$'::text))", {"code": "AB-x"}, True),
    ("CHECK ((length(code) > 3))", {"code": "abc"}, True),
    ("CHECK (((code)::text ~~ '%@_%'::text))", {"code": "a.b"}, True),
    ("CHECK (((code)::text ~~ '%@_%'::text))", {"code": "a@b"}, False),
    # as MySQL and MariaDB print them
    ("(`rate` between 1 and 365)", {"rate": "366"}, True),
    ("(`lat` between -(90) and 90)", {"lat": "-90.5"}, True),
    ("(`code` not like 'a%')", {"code": "abc"}, True),
    (r"regexp_like(`code`,_utf8mb4\'^[0-9]{3}$\')", {"code": "12"}, True),
    (r"(`status` in (_utf8mb4\'N\',_utf8mb4\'C\'))", {"status": "Q"}, True),
    ("not `passed` or `findings` is not null", {"passed": "1", "findings": None}, True),
    # what isn't known is left to the server
    ("CHECK ((rate > now()))", {"rate": "0"}, False),
    ("CHECK (((rate * (2)::numeric) > (0)::numeric))", {"rate": "-1"}, False),
    ("CHECK ((code < 'b'::text))", {"code": "c"}, False),
    ("CHECK (is_valid(code))", {"code": "c"}, False),
    ("CHECK ((rate > (0)::numeric))", {"rate": "NaN"}, False),
    ("CHECK ((rate > (0)::numeric", {"rate": "-1"}, False),
)  # fmt: skip


@pytest.mark.parametrize(("check", "row", "refused"), CASES)
def test_only_what_is_surely_broken_is_refused(check: str, row: dict[str, object], refused: bool) -> None:
    assert read(as_written(check), NAMES).refuses(row) is refused


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{2}-[0-9]{1,10}$",
        "^[0-9A-Z -]{3,10}$",
        r"^(a|bc)+x?\.[[:digit:]]{2,}$",
        r"^[^@]+@\w+\.[a-z]{2,6}$",
        "^.*@.*$",
    ],
)
def test_texts_of_a_pattern_differ(pattern: str) -> None:
    drawn = [drawn_from(pattern, random.Random(seed)) for seed in range(20)]
    assert None not in drawn
    assert len(set(drawn)) > 10


@pytest.mark.parametrize("pattern", ["^(?=a)b", r"\p{L}", "^[a", "(a"])
def test_a_pattern_that_cannot_be_read_makes_nothing(pattern: str) -> None:
    assert drawn_from(pattern, random.Random(1)) is None


RENTAL = Table(
    "rental",
    (
        Column("code", "character varying(16)", nullable=False),
        Column("begins", "date", nullable=False),
        Column("ends", "date", nullable=False),
        Column("days", "integer", nullable=False),
        Column("lat", "double precision", nullable=True),
        Column("passed", "boolean", nullable=False),
        Column("findings", "text", nullable=True),
    ),
    ("code",),
    checks=(
        "CHECK (((code)::text ~ '^[A-Z]{2}-[0-9]{1,10}$'::text))",
        "CHECK ((ends >= begins))",
        "CHECK (((days >= 1) AND (days <= 365)))",
        "CHECK (((lat >= ('-90'::integer)::double precision) AND (lat <= (90)::double precision)))",
        "CHECK ((passed OR (findings IS NOT NULL)))",
    ),
)


def test_constants_of_a_check_that_mysql_lists_are_drawn() -> None:
    check = as_written(r"(`status` in (_utf8mb4\'N\',_utf8mb4\'C\'))")
    table = Table("booking", (Column("status", "char(1)", nullable=False),), (), checks=(check,))
    drawn = {RowMaker(seed).row(table, seed, {})["status"] for seed in range(40)}
    assert drawn == {"N", "C"}


def test_rows_meet_the_checks_of_their_table() -> None:
    rows = [RowMaker(number).row(RENTAL, number, {}) for number in range(200)]
    assert not [row for row in rows if any(one.refuses(row) for one in of_table(RENTAL))]
    assert len({row["code"] for row in rows}) == 200
    assert len({row["days"] for row in rows}) > 20, "not only the ends of a range"
    assert any(row["passed"] == "false" for row in rows)
    assert all(date.fromisoformat(str(row["begins"])) <= date.fromisoformat(str(row["ends"])) for row in rows)
