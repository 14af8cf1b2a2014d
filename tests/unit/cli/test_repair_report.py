"""A repair's before and after in its four forms."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from migrator.cli.repair.choice import Choice
from migrator.cli.repair.forms import RepairReport, junit_report, lines, write_reports
from migrator.cli.repair.html import html_report
from migrator.cli.repair.repair import repair
from migrator.cli.repair.report import Outcome, outcome, planned, planned_outcome, step_line
from migrator.model.requests.request import DumpRequest, RequestState, Scope
from migrator.model.table import TableId
from migrator.run.commands.repair import RepairStep, Way
from tests.unit.verify.test_verify_report import EVIL, Seen
from verify.tables.findings.differing import Differing, DifferingKey, DifferingTable

AT = "2026-01-01T00:00:00+00:00"
AGAIN = "migrator repair --from verify.json --apply --table=item"
COLUMNS = (("id", "int", "int4"), ("note", "text", "text"))
ITEM = DifferingTable("item", ("id",), COLUMNS, 3, 3, "different")
PART = DifferingTable("part", ("id",), COLUMNS, 1, 1, "different")
WRONG = DifferingKey("item", "different", ("1",), ("1", "right"), ("1", EVIL))
GONE = DifferingKey("item", "missing", ("2",), ("2", "two"), None)
MORE = DifferingKey("item", "extra", ("3",), None, ("3", "rogue"))
OTHER = DifferingKey("part", "extra", ("4",), None, ("4", "rogue"))
BEFORE = Differing("shop", (ITEM, PART), (WRONG, GONE, MORE, OTHER))
SOURCE = (TableId("s", "t"),)
STEPS = (
    RepairStep("item", (("1",), ("2",), ("3",)), Way.LISTED, SOURCE, Scope(), 3),
    RepairStep("part", (("4",),), Way.WHOLE, SOURCE, Scope(), 70, "the key is computed"),
)
DONE = (
    DumpRequest("r1", SOURCE, state=RequestState.DONE),
    DumpRequest("r2", SOURCE, state=RequestState.DONE),
)


def after(*keys: DifferingKey, item: str = "equal", part: str = "equal") -> Outcome:
    tables = tuple(
        replace(table, verdict=verdict, differ=len(keys), listed=len(keys))
        for table, verdict in ((ITEM, item), (PART, part))
    )
    return outcome(BEFORE, STEPS, DONE, Differing("shop", tables, keys))


def page(done: Outcome) -> Seen:
    return Seen(html_report("shop", AT, 3.0, done, "migrator repair"))


def tags(seen: Seen) -> list[str]:
    return [str(a["data-status"]) for tag, a in seen.tags if tag == "details"]


def test_the_page_says_what_was_planned_what_was_done_and_both_verdicts() -> None:
    seen = page(after())
    assert seen.unclosed == []
    assert [tag for tag, _ in seen.tags].count("script") == 1
    assert tags(seen) == ["repaired"] * 4
    for said in ("alert(1)", "the key is computed", "listed source keys", "r2", "done", "rogue", "no row"):
        assert said in seen.text, said
    verdicts = [a["class"] for _, a in seen.tags if "verdict" in (a.get("class") or "")]
    assert verdicts[1:] == ["verdict repaired", "verdict different", "verdict equal"] * 2
    assert "What to do" not in seen.text


def test_what_is_left_comes_first_and_says_both_sides_again() -> None:
    again = replace(WRONG, target=("1", "hacked again"))
    seen = page(after(replace(MORE, key=("9",)), again, item="different"))
    assert tags(seen) == ["still different", "repaired", "repaired", "repaired"]
    assert "hacked again" in seen.text
    assert "1 other rows differ" in seen.text
    assert "What to do" in seen.text


def test_a_row_of_a_table_that_was_not_judged_wholly_is_not_called_repaired() -> None:
    seen = page(after(part="unknown"))
    assert tags(seen) == ["repaired"] * 3 + ["unknown"]
    assert "not every row could be judged" in seen.text


@pytest.mark.parametrize(
    ("done", "numbers", "code"),
    [
        (after(), ("2", "0", "0"), 0),
        (after(WRONG, item="different"), ("2", "1", "0"), 1),
        (after(part="unknown"), ("2", "0", "1"), 3),
    ],
)
def test_junit_json_and_text_say_the_same(
    tmp_path: Path, done: Outcome, numbers: tuple[str, str, str], code: int
) -> None:
    report = RepairReport("shop", AT, 3.0, done, "migrator repair")
    write_reports(report, tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {f"repair.{kind}" for kind in ("txt", "json", "xml", "html")}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    suite = ElementTree.fromstring(junit_report(report))
    assert tuple(suite.get(name) for name in ("tests", "failures", "errors")) == numbers
    document = json.loads((tmp_path / "repair.json").read_text())
    verdict = {0: "repaired", 1: "different", 3: "unknown"}[code]
    assert (document["format"], document["exit_code"], document["verdict"]) == (1, code, verdict)
    assert [step["rows"] for step in document["planned"]] == [3, 70]
    assert document["before"] == {"item": {"different": 1, "missing": 1, "extra": 1}, "part": {"extra": 1}}
    assert (tmp_path / "repair.txt").read_text().startswith(verdict.upper())


def test_a_dry_run_has_the_same_forms_and_says_that_nothing_was_done(tmp_path: Path) -> None:
    plan = RepairReport("shop", AT, 3.0, planned_outcome(BEFORE, STEPS), AGAIN)
    write_reports(plan, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        f"repair-plan.{kind}" for kind in ("txt", "json", "xml", "html")
    }
    document = json.loads((tmp_path / "repair-plan.json").read_text())
    assert document["command"] == AGAIN
    assert (document["dry_run"], document["verdict"], document["exit_code"]) == (True, "different", 1)
    assert (
        document["after"]
        == document["before"]
        == {"item": {"different": 1, "missing": 1, "extra": 1}, "part": {"extra": 1}}
    )
    assert [step["rows"] for step in document["planned"]] == [3, 70]
    suite = ElementTree.fromstring((tmp_path / "repair-plan.xml").read_text())
    assert tuple(suite.get(name) for name in ("tests", "failures", "errors")) == ("2", "2", "0")
    text = (tmp_path / "repair-plan.txt").read_text()
    assert "dry run: nothing was written" in text
    assert "after" not in text
    seen = Seen((tmp_path / "repair-plan.html").read_text())
    assert seen.unclosed == []
    assert sorted(tags(seen)) == ["different", "extra", "extra", "missing"]
    for said in (
        "dry run of a repair of shop",
        "nothing: this is a dry run",
        AGAIN,
        "the key is computed",
    ):
        assert said in seen.text, said
    for not_said in ("What was done", "Before and after", "row after", "still "):
        assert not_said not in seen.text, not_said


@pytest.mark.parametrize(
    "choice",
    [
        Choice(),
        Choice(("item", "part")),
        Choice(("-item",), ("--apply", '"a, b",-1', "")),
        Choice(("it em",), (), ("-5", "--from")),
    ],
)
def test_a_choice_is_read_back_from_the_command_that_is_shown(choice: Choice) -> None:
    parsed = repair.make_context("repair", choice.options()).params
    assert (parsed["tables"], parsed["keys"], parsed["key_range"]) == (
        choice.tables,
        choice.keys,
        choice.key_range,
    )
    assert not parsed["apply"]


@pytest.mark.parametrize(
    ("table", "verdict", "code"),
    [
        (replace(ITEM, differ=0, listed=0, verdict="equal"), "equal", 0),
        (replace(ITEM, verdict="unknown"), "unknown", 3),
    ],
)
def test_a_dry_run_with_nothing_to_do_says_so(table: DifferingTable, verdict: str, code: int) -> None:
    done = planned_outcome(Differing("shop", (table,), ()), ())
    assert (done.verdict(), done.exit_code()) == (verdict, code)
    assert "What to do" not in page(done).text


def test_a_key_that_the_mapping_makes_twice_is_to_be_seen_though_nothing_is_planned() -> None:
    twice = replace(WRONG, status="duplicate")
    done = planned_outcome(Differing("shop", (ITEM,), (twice,)), ())
    assert (done.verdict(), done.before) == ("different", {"item": {"duplicate": 1}})


def test_a_joined_table_is_derived_whole_and_what_begins_that_is_no_count_of_its_rows() -> None:
    (step,) = planned([RepairStep("item", (("1",), ("2",)), Way.REMAP, SOURCE, Scope(), 29)])
    assert step_line(step) == (
        "item: 2 rows are wrong; all its rows are derived anew from the mirror, in one transaction, as it is joined."
        " A dump of s.t, about 29 rows, begins that"
    )


def test_no_form_of_the_plan_says_that_a_joined_tables_rows_are_read_from_what_begins_it() -> None:
    """The rows of a small table that is only looked up stood as if all wrong rows were read from them."""
    keys = tuple((str(number),) for number in range(578))
    planned_so = {}
    for way in (Way.REMAP, Way.LISTED):
        step = RepairStep("item", keys, way, SOURCE, Scope(), 29)
        done = planned_outcome(BEFORE, [step])
        text = "\n".join(lines(done))
        assert step_line(*planned([step])) in text
        planned_so[way] = (text, page(done).text)
    text, html = planned_so[Way.REMAP]
    assert "about 29 rows of s.t" not in text
    assert "A dump of s.t, about 29 rows, begins that" in text
    assert "about rows read" not in html
    assert "s.t, whose dump begins it" in html
    text, html = planned_so[Way.LISTED]
    assert "578 rows by listed source keys, about 29 rows of s.t" in text
    assert "begins it" not in html
