"""Positions of a PostgreSQL log: one order for commits and keepalives, tokens bound to a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.lsn import (
    commit_position,
    format_lsn,
    parse_lsn,
    position_up_to,
    token_parts,
    without_page_header,
)
from migrator.errors import SourceError
from migrator.model.position import Position

PAGE, SEGMENT = 8192, 16 << 20


@given(st.integers(0, 2**64 - 1))
def test_text_and_number_agree(lsn: int) -> None:
    assert parse_lsn(format_lsn(lsn)) == lsn


def test_text_as_the_server_prints_it() -> None:
    assert parse_lsn("16/B374D848") == 0x16B374D848
    assert format_lsn(0x16B374D848) == "16/B374D848"
    assert format_lsn(0x1000000005) == "10/5"


@pytest.mark.parametrize("text", ["", "16", "16/", "x/y", "16/1/2"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="log sequence number"):
        parse_lsn(text)


@given(st.integers(1, 2**60), st.integers(1, 1000))
def test_a_keepalive_hides_no_later_commit_and_covers_every_earlier_one(end: int, length: int) -> None:
    keepalive = position_up_to(end, "7")
    just_ended = commit_position(end - length, end, "7")
    starts_there = commit_position(end, end + length, "7")
    assert just_ended <= keepalive < starts_there


def test_tokens_carry_place_and_server() -> None:
    assert token_parts(commit_position(0x10, 0x30, "7710")) == (0x30, "7710")
    assert token_parts(position_up_to(0x30, "7710")) == (0x30, "7710")
    with pytest.raises(SourceError):
        token_parts(Position(5, "binlog.000007"))


@pytest.mark.parametrize(
    ("insert", "same_as"),
    [
        pytest.param(5 * PAGE + 24, 5 * PAGE, id="only a page header since the page began"),
        pytest.param(3 * SEGMENT + 40, 3 * SEGMENT, id="only a segment's long header"),
        pytest.param(
            3 * SEGMENT + 24, 3 * SEGMENT + 24, id="inside a long header: not a place the server reports"
        ),
        pytest.param(5 * PAGE + 40, 5 * PAGE + 40, id="a record ends here, after a short header"),
        pytest.param(5 * PAGE, 5 * PAGE, id="exactly a page's start"),
        pytest.param(5 * PAGE + 4096, 5 * PAGE + 4096, id="inside a page"),
    ],
)
def test_insert_position_without_a_fresh_pages_header(insert: int, same_as: int) -> None:
    assert without_page_header(insert, PAGE, SEGMENT) == same_as
