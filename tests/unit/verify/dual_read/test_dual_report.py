"""Numbers and reports of the dual read, with comparisons of every outcome."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.verify.test_verify_report import EVIL, Seen
from verify.dual_read.answer import answer_of
from verify.dual_read.report import json_report, junit_report, text_report, write_reports
from verify.dual_read.report_html import html_report
from verify.dual_read.result import DualReadResult, PairResult, latency
from verify.dual_read.tally import Tally
from verify.dual_read.verdict import Failure, Outcome, Read, Round, Rules, Verdict, first_verdict, verdict
from verify.readers.snapshot import LogPlace
from verify.verdict import Verdict as Answered
from verify.verdict import overall_verdict

AT = LogPlace(7, "0/7")


def read(value: Any, elapsed_s: float = 0.002) -> Read:
    return Read(answer_of([{"id": 1, "name": value}]), AT, AT, elapsed_s)


def judged(old: Read, new: Read, rules: Rules | None = None) -> Verdict:
    rules = rules or Rules()
    found = first_verdict(old, new, rules) or verdict([Round(old, new, old, True, True)], rules)
    assert found is not None
    return found


def tally(name: str, *answers: tuple[Any, Any], rules: Rules | None = None) -> Tally:
    made = Tally(name, "SELECT 1 AS old", "SELECT 1 AS new")
    for number, (old, new) in enumerate(answers):
        a, b = read(old), read(new, 0.05)
        made.timed("old", a.elapsed_s)
        made.timed("new", b.elapsed_s)
        made.take(judged(a, b, rules), {"id": number}, a, b)
    return made


def result(*pairs: PairResult) -> DualReadResult:
    return DualReadResult(
        migration="shop",
        verdict=overall_verdict(pair.verdict for pair in pairs),
        started_at="2026-01-01T00:00:00+00:00",
        elapsed_s=3.0,
        source="mariadb://judge@old.example:3306/shop",
        target="postgresql://judge@new.example:5432/shop",
        seed=1,
        pairs=pairs,
        notes=("general.log: 5 of 9 SELECTs are described by a pair",),
        remedy="see the samples",
    )


def every_kind() -> DualReadResult:
    mixed = tally("a customer", *[("Ann", "Ann")] * 40, ("Ann", "ANN"), ("Ann", "Eve"), (EVIL, "gone"))
    mixed.take(Verdict(Outcome.LAG, "settled in round 1"), {"id": 77}, read("a"), read("b"))
    mixed.take(Verdict(Outcome.UNKNOWN, "the new side gave no answer: down"), {"id": 78}, read("a"), None)
    mixed.drop()
    accepted = tally("a name", ("Ann", "ANN"), rules=Rules(accept=("case",)))
    return result(mixed.result(), tally("equal", *[(1, 1)] * 30).result(), accepted.result())


@pytest.mark.parametrize(
    ("answers", "rules", "expected"),
    [
        ([("a", "a")], Rules(), Answered.EQUAL),
        ([("a", "A")], Rules(), Answered.DIFFERENT),
        ([("a", "A")], Rules(accept=("case",)), Answered.EQUAL),
        ([("a", "a"), ("a", "b")], Rules(accept=("case",)), Answered.DIFFERENT),
        ([], Rules(), Answered.UNKNOWN),
    ],
)
def test_the_verdict_of_a_pair(answers: list[tuple[str, str]], rules: Rules, expected: Answered) -> None:
    assert tally("p", *answers, rules=rules).result().verdict is expected


def test_one_unknown_comparison_is_no_pass_and_hides_no_bug() -> None:
    made = tally("p", ("a", "a"))
    made.take(Verdict(Outcome.UNKNOWN, "down"), {}, None, None)
    assert (made.result().verdict, made.result().reason) == (Answered.UNKNOWN, "down")
    made.take(judged(read("a"), read("b")), {}, None, None)
    assert made.result().verdict is Answered.DIFFERENT


def test_a_slow_new_side_is_warned_of_and_a_fast_one_is_not() -> None:
    slow = tally("p", *[("a", "a")] * 30).result()
    assert "25.0 times" in slow.slower
    assert (slow.old_latency.p50_ms, slow.new_latency.p95_ms, slow.new_latency.reads) == (2.0, 50.0, 30)
    few = tally("p", *[("a", "a")] * 3).result()
    assert few.slower == ""
    assert slow.verdict is Answered.EQUAL  # a warning is no verdict


@given(st.lists(st.floats(0, 100), min_size=1, max_size=300))
def test_percentiles_are_values_that_were_measured(times: list[float]) -> None:
    found = latency(times, len(times))
    shown = {round(1000 * each, 3) for each in times}
    assert {found.p50_ms, found.p95_ms, found.p99_ms} <= shown
    assert found.p50_ms <= found.p95_ms <= found.p99_ms
    assert sum(round(1000 * each, 3) <= found.p95_ms for each in times) >= 0.95 * len(times)


def test_the_page_is_whole_escaped_and_shows_every_outcome() -> None:
    seen = Seen(html_report(every_kind()))
    assert seen.unclosed == []
    assert [tag for tag, _ in seen.tags].count("script") == 1
    shown = {a["data-status"] for tag, a in seen.tags if tag == "details" and "data-status" in a}
    assert shown == {"lag", "semantic", "bug", "unknown"}
    assert "alert(1)" in seen.text
    assert "0/7" in seen.text


def test_text_json_and_junit_say_the_same(tmp_path: Path) -> None:
    found = every_kind()
    write_reports(found, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        f"dual-read.{kind}" for kind in ("txt", "json", "xml", "html")
    }
    document = json.loads((tmp_path / "dual-read.json").read_text())
    assert (document["format"], document["exit_code"], document["verdict"]) == (1, 1, "different")
    pair = document["pairs"][0]
    numbers = [
        pair[n] for n in ("compared", "match", "lag", "semantic", "accepted", "bug", "unknown", "dropped")
    ]
    assert numbers == [45, 40, 1, 1, 0, 2, 1, 1]
    assert ["case", 1] in pair["causes"]
    text = text_report(found)
    assert text.startswith("DIFFERENT")
    assert "SLOWER" in text
    suite = ElementTree.fromstring(junit_report(found))
    assert [suite.get(k) for k in ("tests", "failures", "errors")] == ["3", "1", "0"]
    assert json.loads(json_report(replace(found, pairs=())))["pairs"] == []


def test_a_failure_has_no_parameters_of_its_own() -> None:
    old, new = read("a"), Read(Failure("OperationalError: down"), None, None, 0.0)
    made = Tally("p")
    made.take(judged(old, new), {"id": 3}, old, new)
    (sample,) = made.result().samples
    assert (sample.outcome, sample.parameters, sample.target_at) == (Outcome.UNKNOWN, (("id", "3"),), "")
