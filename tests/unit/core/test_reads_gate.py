"""The gate of reads: what a dual read must have shown, pair by pair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.reads_gate import gate, merged, problems
from migrator.model.cutover.reads import ReadShape, ReadsLimits

LIMITS = ReadsLimits(comparisons=100, slower=2.0)
GOOD = ReadShape(
    "/p/queries.yaml",
    "content",
    "open orders",
    "queries",
    "mapping",
    1000.0,
    settled=100,
    lag=7,
    old_p50_ms=1.0,
    old_p99_ms=5.0,
    new_p50_ms=1.0,
    new_p99_ms=10.0,
)
NOW = {"/p/queries.yaml": "content"}


def test_a_pair_that_meets_each_limit_exactly_lets_reads_go() -> None:
    assert problems(GOOD, LIMITS, "mapping", NOW) == ()
    assert gate([GOOD], LIMITS, "mapping", NOW) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"settled": 99}, "99 of 100 comparisons"),
        ({"wrong": 1}, "1 wrong"),
        ({"unknown": 1}, "1 unknown"),
        ({"new_p99_ms": 10.1}, "p99 10.1 ms against 5.0 ms: more than 2 times"),
        ({"mapping": "another"}, "the mapping has changed since"),
        ({"content": "another"}, "its file has changed since, or is gone"),
    ],
)
def test_one_limit_that_is_missed_keeps_reads_where_they_are(changed: dict[str, object], said: str) -> None:
    shape = replace(GOOD, **changed)  # type: ignore[arg-type]
    assert [said in one for one in problems(shape, LIMITS, "mapping", NOW)] == [True]
    found = gate([GOOD, replace(shape, name="totals")], LIMITS, "mapping", NOW)
    assert found.startswith("totals: ")
    assert said in found, "one bad pair among good ones is enough"


def test_nothing_kept_is_no_proof() -> None:
    assert "no dual read was kept" in gate([], LIMITS, "mapping", NOW)


def test_a_file_that_is_gone_keeps_reads_where_they_are() -> None:
    assert "or is gone" in gate([GOOD], LIMITS, "mapping", {})


def test_a_p99_below_a_millisecond_is_noise() -> None:
    assert problems(replace(GOOD, old_p99_ms=0.1, new_p99_ms=1.0), LIMITS, "mapping", NOW) == ()
    assert problems(replace(GOOD, old_p99_ms=0.1, new_p99_ms=1.01), LIMITS, "mapping", NOW) != ()


def test_a_run_replaces_its_file_alone_and_keeps_pairs_that_it_left_out() -> None:
    other = replace(GOOD, file="/p/other.yaml")
    gone = replace(GOOD, name="gone")
    left_out = ReadShape(GOOD.file, "content 2", GOOD.name, "queries")
    fresh = replace(GOOD, name="fresh", content="content 2", wrong=3)
    kept = merged([other, GOOD, gone], [left_out, fresh])
    assert kept == (other, replace(GOOD, content="content 2"), fresh)


def test_a_pair_whose_queries_changed_begins_anew() -> None:
    changed = ReadShape(GOOD.file, "content 2", GOOD.name, "queries 2")
    assert merged([GOOD], [changed]) == (changed,)
    assert "0 of 100 comparisons" in gate([changed], LIMITS, "mapping", {GOOD.file: "content 2"})
