"""The report of scenario runs: nobody may read a pass out of it that is none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scenarios.play.run_result import MISSED, RunResult
from scenarios.report import chart, write
from scenarios.report.facts import FaultFact, Series, facts, of_history
from scenarios.report.tables import Row, Table, Tables
from scenarios.report.verdict import in_order, verdict
from scenarios.scenario import Expectation, Scenario, WorkloadSpec
from tests.made_runs import HOLDS, UNKNOWN, VIOLATED, checks, made, result, scenario
from verify.history.history import PUT, Description, History, TrackedTable, table_of
from verify.history.result import CheckResult, Moment, WitnessCase


def history(commits: int = 40) -> History:
    """Writes every 100 ms, each in the target 50 ms later; one fault from 1 s to 2 s."""
    writes = list(range(1, commits + 1))
    at_us = [number * 100_000 for number in writes]
    rows = {
        "table": ["register"] * commits,
        "key": [str(number % 5) for number in writes],
        "session": [1] * commits,
        "number": writes,
        "kind": [PUT] * commits,
    }
    empty = {name: table_of(name, {"table": []}) for name in ("deliveries", "final_source", "final_target")}
    return History(
        Description(
            "target_killed",
            "postgresql",
            7,
            (TrackedTable("register"),),
            True,
            versions={"Python": "3.11.2", "PostgreSQL": "18.4"},
            command="migrator scenario run target_killed --seed 7",
        ),
        operations=table_of(
            "operations",
            {**rows, "invoked_us": at_us, "ended_us": at_us, "outcome": ["ok"] * (commits - 1) + ["unknown"]},
        ),
        log=table_of(
            "log",
            {
                "position": writes,
                "order": [n * 10 for n in writes],
                "index": [0] * commits,
                **rows,
                "committed_at_us": at_us,
            },
        ),
        commits=table_of(
            "commits",
            {
                "commit": writes,
                "order": [number * 10 for number in writes],
                "committed_at_us": [each + 50_000 for each in at_us],
            },
        ),
        changes=table_of("changes", {"commit": writes, **rows}),
        observations=table_of("observations", {"at_us": []}),
        faults=table_of(
            "faults",
            {
                "name": ["kill_server", "latency"],
                "point": ["target.moved:2", ""],
                "fired": [True, False],
                "fired_us": [1_000_000, None],
                "healed_us": [2_000_000, None],
                "detail": ["<b>pid</b> 4711", ""],
            },
        ),
        **empty,
    )


class Tags(HTMLParser):
    """Notes what is open at the end, and every address that a page asks for."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def written(folder: Path, results: list[RunResult], kill: Table | None = None) -> tuple[str, str, str]:
    """The page, the terminal's text, the JUnit document."""
    text = write(results, folder, Tables(kill=kill))
    return (folder / "report.html").read_text(), text, (folder / "junit.xml").read_text()


# -- the page ---------------------------------------------------------------------------------------------------


def test_everything_foreign_is_escaped_and_the_page_is_self_contained(tmp_path: Path) -> None:
    evil = "<script>alert('1 & 2')</script>"
    case = WitnessCase(evil, (evil,), (Moment("log", 1, evil, True),))
    check = CheckResult("D1", evil, VIOLATED, 1, evil, 1, (case,), evil)
    run = made(scenario("a_name", evil), tmp_path / "b", (check,), engine=evil, error=evil)
    table = Table(evil, evil, (evil,), (Row((evil,), VIOLATED),))
    page, _, xml = written(tmp_path / "report", [run], table)
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    assert [each for each in tags.addresses if not each.startswith("#")] == []
    ElementTree.fromstring(xml)


def test_what_is_wrong_comes_first(tmp_path: Path) -> None:
    runs = [
        result(tmp_path, "b_holds"),
        result(tmp_path, "c_unknown", D8=UNKNOWN),
        result(tmp_path, "d_violated", D1=VIOLATED),
        result(tmp_path, "a_holds"),
    ]
    assert [fact.run.scenario.name for fact in in_order(facts(runs))] == [
        "d_violated",
        "c_unknown",
        "a_holds",
        "b_holds",
    ]
    page, text, _ = written(tmp_path / "report", runs)
    places = [page.index(f">{name}") for name in ("d_violated", "c_unknown", "a_holds")]
    assert places == sorted(places)
    assert page.index("<h1>") < page.index("VIOLATED")
    assert text.splitlines()[-1] == "VIOLATED: 1 violated, 1 unknown, 2 holds"
    assert "key 17: version 9 at commit 120 after version 11" in text


def test_the_history_is_drawn_with_the_faults_that_fired(tmp_path: Path) -> None:
    run = result(tmp_path)
    folder = run.bundle / "history"
    folder.mkdir(parents=True)
    history().save(folder)
    page, _, _ = written(tmp_path / "report", [run])
    assert page.count('class="band"') == 1
    assert "did not fire" in page
    assert "migrator scenario run target_killed --seed 7" in page
    assert "&lt;b&gt;pid&lt;/b&gt; 4711" in page


def test_throughput_and_lag_are_the_histories(tmp_path: Path) -> None:
    found = of_history(history())
    series = found.series
    assert series is not None
    assert sum(series.written) * series.bin_s == pytest.approx(39)  # one is unknown
    assert sum(series.applied) * series.bin_s == pytest.approx(40)
    assert [lag for _, lag in series.lag] == pytest.approx([50.0] * len(series.lag))
    assert dict(found.counts)["target commits"] == 40
    assert [fault.fired for fault in found.faults] == [True, False]


@pytest.mark.parametrize("most", [0.0, 0.3, 7.0, 12_345.0])
def test_a_drawing_stays_in_its_frame(most: float) -> None:
    series = Series(0.5, (0.0, most, most / 3), (most, 0.0, 0.0), ((0.2, most), (1.2, 0.0)))
    faults = [FaultFact("stop", "", True, 1.0, 9.0, ""), FaultFact("late", "", False, None, None, "")]
    svg = chart.chart(series, faults, "a < b")
    root = ElementTree.fromstring(svg)
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    places = [point.split(",") for points in re.findall(r'points="([^"]*)"', svg) for point in points.split()]
    assert places
    assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in places)
    assert sum('class="band"' in part for part in svg.split("<rect")) == 1


def test_a_damaged_history_is_told(tmp_path: Path) -> None:
    run = result(tmp_path)
    (run.bundle / "history").mkdir(parents=True)
    page, _, _ = written(tmp_path / "report", [run])
    assert "no history can be read there" in page


# -- unknown is no pass -----------------------------------------------------------------------------------------


def test_unknown_is_an_error_for_junit_and_never_a_pass(tmp_path: Path) -> None:
    page, text, xml = written(tmp_path / "report", [result(tmp_path, D8=UNKNOWN)])
    root = ElementTree.fromstring(xml)
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("9", "0", "2")
    assert root.get("errors") == "2"
    assert not root.findall(".//skipped")
    assert text.endswith("UNKNOWN: 1 unknown")
    assert ">UNKNOWN<" in page
    assert json.loads((tmp_path / "report" / "report.json").read_text())["exit_code"] == 3


def test_a_fault_that_did_not_fire_is_named_though_every_checker_holds(tmp_path: Path) -> None:
    run = made(scenario("x"), tmp_path / "x", checks(), doubts=("1 planned faults did not fire",))
    _, text, xml = written(tmp_path / "report", [run])
    assert "1 planned faults did not fire" in text
    error = ElementTree.fromstring(xml).find(".//testcase[@name='verdict']/error")
    assert error is not None
    assert error.get("message") == "1 planned faults did not fire"


def test_another_ending_than_expected_is_a_failure_with_its_error(tmp_path: Path) -> None:
    run = made(scenario("x"), tmp_path / "x", ending="halts", error="GapError: \x1b[31mgone")
    _, text, xml = written(tmp_path / "report", [run])
    assert "expected ending: resumes; found: halts (GapError" in text
    failure = ElementTree.fromstring(xml).find(".//failure")
    assert failure is not None
    assert failure.text == "GapError: �[31mgone"


def test_no_runs_prove_nothing(tmp_path: Path) -> None:
    page, text, _ = written(tmp_path / "report", [])
    assert text == "UNKNOWN: nothing was run"
    assert ">UNKNOWN<" in page


# -- negative controls ------------------------------------------------------------------------------------------


def test_a_broken_variant_is_right_when_a_checker_catches_it(tmp_path: Path) -> None:
    caught = result(tmp_path, "swaps", "no_fencing", D6=VIOLATED)
    assert verdict([result(tmp_path), caught]) is HOLDS
    page, text, xml = written(tmp_path / "report", [result(tmp_path), caught])
    assert ElementTree.fromstring(xml).get("failures") == "0"
    assert "1 of 1 broken variants caught" in page
    assert text.splitlines()[-1].startswith("HOLDS")


def test_a_survivor_spoils_the_report(tmp_path: Path) -> None:
    survivor = result(tmp_path, "swaps", "no_fencing")
    assert verdict([result(tmp_path), survivor]) is VIOLATED
    crashed = made(scenario("swaps"), tmp_path / "c", checks(), ending="halts", mutant="no_fencing")
    assert verdict([crashed]) is VIOLATED  # a broken variant that merely ends oddly was caught by no checker
    _, text, xml = written(tmp_path / "report", [result(tmp_path), survivor])
    assert ElementTree.fromstring(xml).get("failures") == "1"
    assert "SURVIVED" in text


@pytest.mark.parametrize(
    "why", ["never played", "nothing compared", "a fault was silent", "a record with holes"]
)
def test_a_broken_variant_that_could_not_be_judged_did_not_survive(tmp_path: Path, why: str) -> None:
    ran = result(tmp_path, "swaps", "no_fencing", D6=VIOLATED if "holes" in why else HOLDS)
    runs = {
        "never played": made(
            scenario("swaps"), tmp_path / "c", ending="fails", error=why, mutant="no_fencing"
        ),
        "nothing compared": made(scenario("swaps"), tmp_path / "c", ending="halts", mutant="no_fencing"),
        "a fault was silent": replace(ran, outcome=UNKNOWN, reason=why),
        "a record with holes": replace(ran, counts={MISSED: 2}),
    }
    assert verdict([result(tmp_path), runs[why]]) is UNKNOWN
    page, text, xml = written(tmp_path / "report", [result(tmp_path), runs[why]])
    root = ElementTree.fromstring(xml)
    assert (root.get("failures"), root.get("errors")) == ("0", "1")
    assert "SURVIVED" not in text + page
    assert "unknown   swaps [postgresql, no_fencing] (broken variant)" in text
    assert text.splitlines()[-1].startswith("UNKNOWN")
    assert json.loads((tmp_path / "report" / "report.json").read_text())["exit_code"] == 3


def test_the_kill_table_counts(tmp_path: Path) -> None:
    table = Table(
        "Kill table",
        "note",
        ("variant", "seeds"),
        (Row(("ordering off", "3"), HOLDS), Row(("fencing off", "100"), VIOLATED)),
    )
    page, text, xml = written(tmp_path / "report", [result(tmp_path)], table)
    assert "Kill table: 1 of 2 as they should be" in text
    assert text.splitlines()[-1].startswith("VIOLATED")
    assert ElementTree.fromstring(xml).get("failures") == "1"
    assert "fencing off" in page


def test_expectations_of_a_refusal_are_shown(tmp_path: Path) -> None:
    refused = Scenario(
        "fail_x", "t", WorkloadSpec("registers"), expect=Expectation("refused", "replica identity", ())
    )
    run = made(refused, tmp_path / "r", checks(), ending="refused", error="its replica identity is not FULL")
    page, _, _ = written(tmp_path / "report", [run])
    assert "with an error like “replica identity”" in page
    assert "No drawing: no history was recorded" in page
