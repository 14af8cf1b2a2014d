"""The judge's pure parts: causes, canonical JSON, log walking, verdicts, reports."""

from __future__ import annotations

import json
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.model.server import Server
from verify.readers.mysql.binlog_source import logical_type as mariadb_type
from verify.readers.pending import (
    PendingAnswer,
    PgoutputWalk,
    gtid_state,
    lsn_number,
    pending_by_gtid,
    resume_lsn,
)
from verify.readers.postgres.source import logical_type as postgres_type
from verify.readers.snapshot import LedgerState, LogPlace
from verify.report.display import shown
from verify.settings import ServerSettings
from verify.tables.compare.compare import Counts
from verify.tables.compare.json_text import canonical_json
from verify.tables.report import json_report, text_report
from verify.tables.result import (
    CANNOT_DETECT,
    Cell,
    ColumnDifference,
    OldRow,
    Sample,
    TableResult,
    VerifyResult,
    table_verdict,
)
from verify.tables.rounds.live import Round
from verify.verdict import Verdict, overall_verdict


def test_json_is_compared_by_value_and_digit_by_digit() -> None:
    assert canonical_json('{"b": 1.0, "a": [1e2, "x"]}') == canonical_json('{"a":[100,"x"],"b":1}')
    assert canonical_json('{"a": 1, "a": 2}') == canonical_json('{"a": 2}')
    assert canonical_json("[0.1]") != canonical_json("[0.1000000000000000055]")
    assert canonical_json("12345678901234567890123456789012345678") != canonical_json(
        "12345678901234567890123456789012345679"
    )
    assert canonical_json("null") == "null"
    assert canonical_json(None) is None
    assert canonical_json("{not json") == "{not json"
    assert canonical_json("NaN") == "NaN"


@pytest.mark.parametrize("depth", [300, 5_000])
def test_json_is_compared_however_deep_it_is(depth: int) -> None:
    """PostgreSQL takes some thousand levels. One such row must not end a verification."""
    inner = '{"b":1.0,"a":' * depth + "2" + "}" * depth
    other = '{"a": ' * depth + "2" + ', "b": 1}' * depth
    assert canonical_json(inner) == canonical_json(other)
    assert canonical_json(inner) != canonical_json(inner.replace("2", "3"))
    beyond = "[" * 1_000_000
    assert canonical_json(beyond) == beyond


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_json_numbers_are_equal_exactly_when_their_values_are(a: Decimal, b: Decimal) -> None:
    assert (canonical_json(str(a)) == canonical_json(str(b))) == (a == b)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,40})?", fullmatch=True))
def test_any_number_that_json_can_write_is_compared_by_value(text: str) -> None:
    """Beyond what any type of numbers holds: ``1e99999999999999999999``."""
    written = canonical_json(text)
    assert written is not None
    assert canonical_json(written) == written
    mantissa, _, power = text.lower().partition("e")
    shifted = f"{mantissa}{'' if '.' in mantissa else '.0'}0e{power or 0}"
    assert canonical_json(f'{{"a":{shifted}}}') == f'{{"a":{written}}}'
    if written != "0":
        assert canonical_json(f"{mantissa}e{int(power or 0) + 1}") != written


def test_a_document_whose_exponent_nothing_reads_is_compared_as_text() -> None:
    text = "1e" + "9" * 5000
    assert canonical_json(text) == text


def begin(lsn: int) -> bytes:
    return b"B" + struct.pack("!QqI", lsn, 0, 1)


def relation(number: int, name: str) -> bytes:
    return b"R" + struct.pack("!I", number) + b"public\0" + name.encode() + b"\0d" + struct.pack("!h", 0)


def test_pgoutput_walk_sees_only_later_changes_of_wanted_tables() -> None:
    walk = PgoutputWalk(100, {("public", "thing")})
    applied = [begin(100), relation(1, "thing"), b"I" + struct.pack("!I", 1) + b"N", b"C"]
    foreign = [begin(200), relation(2, "other"), b"U" + struct.pack("!I", 2) + b"N", b"C"]
    assert [walk.see(message) for message in applied + foreign] == [None] * 8
    assert walk.see(begin(300)) is None
    assert walk.see(b"D" + struct.pack("!I", 1) + b"K") == "public.thing"
    assert walk.see(b"T" + struct.pack("!IBII", 2, 0, 2, 1)) == "public.thing"


def test_positions() -> None:
    assert lsn_number("16/B374D848") == 0x16B374D848
    assert resume_lsn("0/10@7123456789") == 16
    assert resume_lsn("") is None
    assert gtid_state("0-1-100,1-2-7") == {0: 100, 1: 7}
    assert gtid_state('{"gtid": "0-1-5", "file": "b.1", "offset": 4}') == {0: 5}
    assert gtid_state("") == {}
    assert gtid_state("nonsense") is None


@pytest.mark.parametrize(
    ("token", "answer"),
    [("0-1-5,1-1-2", PendingAnswer.NO), ("0-1-7", PendingAnswer.UNKNOWN), ("x", PendingAnswer.UNKNOWN)],
)
def test_pending_by_gtid(token: str, answer: PendingAnswer) -> None:
    ledger = LedgerState(1, 1, 7, token, None)
    assert pending_by_gtid(ledger, LogPlace(8, "0-1-5,1-1-2")).answer is answer


@pytest.mark.parametrize(
    ("base", "declared", "logical"),
    [
        ("numeric", "numeric(38,0)", "decimal(38,0)"),
        ("numeric", "numeric(39,0)", "string"),
        ("numeric", "numeric(5,-2)", "string"),
        ("numeric", "numeric(2,4)", "string"),
        ("numeric", "numeric", "string"),
        ("int2", "smallint", "int16"),
        ("bpchar", "character(8)", "string"),
        ("timestamptz", "timestamp with time zone", "timestamptz"),
        ("uuid", "uuid", "string"),
        ("_int4", "integer[]", "string"),
    ],
)
def test_postgres_types(base: str, declared: str, logical: str) -> None:
    assert postgres_type(base, declared) == logical


@pytest.mark.parametrize(
    ("base", "declared", "precision", "scale", "logical"),
    [
        ("tinyint", "tinyint(1)", 3, 0, "int8"),
        ("tinyint", "tinyint(3) unsigned", 3, 0, "int16"),
        ("smallint", "smallint(5) unsigned", 5, 0, "int32"),
        ("int", "int(10) unsigned zerofill", 10, 0, "int64"),
        ("bigint", "bigint(20) unsigned", 20, 0, "decimal(20,0)"),
        ("decimal", "decimal(38,10)", 38, 10, "decimal(38,10)"),
        ("decimal", "decimal(39,10)", 39, 10, "string"),
        ("float", "float", 12, 0, "float32"),
        ("bit", "bit(9)", 9, 0, "binary"),
        ("geometry", "geometry", 0, 0, "binary"),
        ("year", "year(4)", 0, 0, "int16"),
        ("datetime", "datetime(6)", 0, 0, "string"),
        ("enum", "enum('a')", 0, 0, "string"),
    ],
)
def test_mariadb_types(base: str, declared: str, precision: int, scale: int, logical: str) -> None:
    assert mariadb_type(base, declared, precision, scale) == logical


def test_shown() -> None:
    assert shown("date", "0") == "1970-01-01"
    assert shown("date", str(2**31 - 1)) == "infinity"
    assert shown("date", "-900000") == "-900000"
    assert shown("timestamptz", "1") == "1970-01-01 00:00:00.000001Z"
    assert shown("timestamp", str(-(2**63))) == "-infinity"
    assert shown("text", "0") == "0"


@pytest.mark.parametrize(
    ("counts", "unknown", "verdict"),
    [
        (Counts(compared=5, equal=5), "", Verdict.EQUAL),
        (Counts(), "", Verdict.EQUAL),  # two empty tables, compared after their dump
        (Counts(), "the dump is not complete", Verdict.UNKNOWN),
        (Counts(compared=5, equal=5, set_aside=1), "", Verdict.UNKNOWN),
        (Counts(compared=5, equal=4, missing=1, set_aside=1), "", Verdict.DIFFERENT),
        (Counts(compared=1, duplicate=1), "", Verdict.DIFFERENT),
        (Counts(compared=1, extra=1), "", Verdict.DIFFERENT),
        (Counts(compared=5, equal=5, bad_rows=1), "", Verdict.DIFFERENT),
        (Counts(compared=1, different=1), "", Verdict.DIFFERENT),
    ],
)
def test_table_verdict(counts: Counts, unknown: str, verdict: Verdict) -> None:
    assert table_verdict(counts, unknown) is verdict


RESULT = VerifyResult(
    migration="demo",
    verdict=Verdict.DIFFERENT,
    started_at="2026-01-01T00:00:00+00:00",
    elapsed_s=1.5,
    source="postgresql://u@h:1/old",
    target="postgresql://u@h:2/new",
    tables=(
        TableResult(
            target="item",
            sources=("thing",),
            key=("id",),
            verdict=Verdict.DIFFERENT,
            reason="",
            counts=Counts(compared=2, equal=1, different=1),
            mapped_rows=2,
            target_rows=2,
            uncompared_columns=("later",),
            columns=(ColumnDifference("note", 1, 1, (("NULL in the target", 1),), (("<b>", None),)),),
            explained_rows_cap=10_000,
            samples=(
                Sample(
                    "different",
                    (("id", "7"),),
                    (Cell("id", "7", "7", False, ""), Cell("note", "<b>", None, True, "NULL in the target")),
                    (OldRow("thing", (("id", "7"), ("note", "<b>"))),),
                    1,
                    1,
                ),
            ),
        ),
    ),
    rounds=(Round(1, LogPlace(1, "0/1"), LogPlace(2, "0/2"), 3, "0/3@1", True, True, "still", 0.5),),
    remedy="correct it",
    cannot_detect=CANNOT_DETECT,
)


def test_an_overall_verdict_needs_verdicts() -> None:
    assert overall_verdict(()) is Verdict.UNKNOWN
    equal, unknown, different = Verdict.EQUAL, Verdict.UNKNOWN, Verdict.DIFFERENT
    assert overall_verdict((equal, equal)) is Verdict.EQUAL
    assert overall_verdict((equal, unknown)) is Verdict.UNKNOWN
    assert overall_verdict((unknown, different, equal)) is Verdict.DIFFERENT
    assert [v.exit_code for v in Verdict] == [0, 1, 3]


def test_text_report_says_verdict_first_and_marks_what_differs() -> None:
    lines = text_report(RESULT).splitlines()
    assert lines[0].startswith("DIFFERENT")
    assert "  > note: <b> -> NULL   (NULL in the target)" in lines
    assert "    id: 7" in lines
    assert "    old row of thing: id=7, note=<b>" in lines
    assert any("later" in line and "not compared" in line for line in lines)
    assert f"  - {CANNOT_DETECT[0]}" in lines


def test_json_report_can_be_read_back() -> None:
    document = json.loads(json_report(RESULT))
    assert (document["format"], document["verdict"], document["exit_code"]) == (2, "different", 1)
    assert document["tables"][0]["samples"][0]["cells"][1]["target"] is None


def test_settings_never_show_the_password() -> None:
    settings = ServerSettings(
        Server(
            kind="postgresql", host="h", port=1, database="d", user="u", password="secret", schema="public"
        )
    )
    assert "secret" not in repr(settings) + settings.server.url()
    with pytest.raises(ValueError, match="kind"):
        ServerSettings(Server(kind="oracle", host="h", port=1, database="d", user="u", schema="public"))
