"""The file of query pairs: what is refused, and with which words; parameters and how they combine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from migrator.errors import ConfigError
from verify.dual_read.queries import load_queries, names_in, only_reads, pairs_of
from verify.dual_read.runner import combinations

GOOD: dict[str, Any] = {
    "name": "p",
    "old": "SELECT a FROM t WHERE id = :id ORDER BY a;",
    "new": "SELECT b FROM u WHERE id = :id",
    "parameters": {"id": {"from": 1, "to": 7, "step": 3}},
}


def test_a_pair_as_it_should_be() -> None:
    (pair,) = pairs_of({"format": 1, "queries": [GOOD]}, "x")
    assert pair.parameters == {"id": (1, 4, 7)}
    assert (pair.rules.order, pair.old[-1]) == ("partial", "a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"old": None}, "p.old: None has the wrong type"),
        ({"old": ""}, "p.old: '' is missing"),
        ({"old": "DELETE FROM t WHERE id = :id"}, "is no plain SELECT"),
        ({"new": "SELECT b FROM u WHERE id = :id FOR UPDATE"}, "is no plain SELECT"),
        ({"new": "SELECT b FROM u WHERE id = :id INTO OUTFILE 'x'"}, "is no plain SELECT"),
        ({"order": "some"}, "p.order: 'some' is none of total, partial, none"),
        ({"accept": ["anything"]}, "p.accept: 'anything' is no named cause"),
        ({"slower_than": 0}, "p.slower_than: 0 is not above 0"),
        ({"slower_than": True}, "p.slower_than: True has the wrong type"),
        ({"speed": 1}, "p.speed: 1 is of no known field"),
        ({"parameters": {"id": []}}, "p.parameters.id: [] is neither a list"),
        ({"parameters": {"id": {"from": 3, "to": 1}}}, "is no range of whole numbers"),
        ({"parameters": {"id": [1], "other": [2]}}, "p.parameters: ['other'] are named on one side only"),
        ({"parameters": {}}, "p.parameters: ['id'] have no values"),
        ({"draw": {"from": "both", "query": "SELECT 1"}}, "p.draw"),
        ({"draw": {"from": "old", "query": "SELECT 1 AS id"}}, "can't be combined"),
        ({"log": "SELECT a FROM t WHERE id = :other"}, "p.log: ['id', 'other']"),
    ],
)
def test_what_is_wrong_is_named_by_field_and_value(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pairs_of({"format": 1, "queries": [{**GOOD, **change}]}, "queries.yaml")
    assert said in caught.value.where
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "no mapping"),
        ({"queries": [GOOD]}, "begin with format: 1"),
        ({"format": 2, "queries": [GOOD]}, "format: 2 is not 1"),
        ({"format": 1, "queries": []}, "at least one pair"),
        ({"format": 1, "queries": [GOOD, GOOD]}, "p: there are several"),
        ({"format": 1, "queries": ["x"]}, "queries[0]: 'x' is no mapping"),
        ({"format": 1, "queries": [GOOD], "more": 1}, "more: unknown"),
    ],
)
def test_a_file_that_is_none_is_refused(document: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pairs_of(document, "queries.yaml")
    assert said in caught.value.where


def test_all_problems_come_together() -> None:
    with pytest.raises(ConfigError, match=r"3 problem\(s\)"):
        pairs_of({"format": 1, "queries": [{**GOOD, "order": "x", "accept": ["y"], "slower_than": -1}]}, "f")


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_queries(tmp_path / "none.yaml")
    file = tmp_path / "queries.yaml"
    file.write_text("format: [")
    with pytest.raises(ConfigError, match="no valid YAML"):
        load_queries(file)
    file.write_text("format: !!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigError, match="no valid YAML"):
        load_queries(file)


def test_names_of_parameters_are_not_casts_or_texts() -> None:
    assert names_in("SELECT a::int, ':no', '12:30' FROM t WHERE b = :yes AND c = :also") == {"yes", "also"}


def test_reading_is_told_by_its_first_word_and_by_locks() -> None:
    assert only_reads(" select 'for update' FROM t")
    assert only_reads("(SELECT 1) UNION (SELECT 2)")
    assert only_reads("SELECT 'a;''b;' AS \"x;y\" FROM `t;u` ; ")
    assert not only_reads("SELECT 1; COMMIT; DROP TABLE t"), (
        "each statement after the first would run as well"
    )
    assert not only_reads("SELECT 1; SELECT 2")
    assert not only_reads("UPDATE t SET a = 1")
    assert not only_reads("SELECT 1 FROM t LOCK IN SHARE MODE")


def test_a_missing_format_hides_no_other_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        pairs_of({"queries": [{**GOOD, "order": "some"}]}, "x")
    assert "begin with format: 1" in caught.value.where
    assert "p.order" in caught.value.where


def test_every_combination_or_a_fair_choice_of_them() -> None:
    values = {"a": (1, 2, 3), "b": ("x", "y")}
    found = combinations(values, 10, random.Random(1))
    assert sorted((each["a"], each["b"]) for each in found) == [(a, b) for a in (1, 2, 3) for b in "xy"]
    few = combinations({"a": range(10**6), "b": range(10**6)}, 50, random.Random(1))
    assert len({(each["a"], each["b"]) for each in few}) == 50
    assert combinations({}, 10, random.Random(1)) == [{}]
