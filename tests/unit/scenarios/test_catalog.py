"""The catalogue of scenarios as a whole: every hazard has its file, and every file means something."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrator.run.steps import POINTS
from scenarios import commands
from scenarios.faults import registry
from scenarios.hazards import HAZARDS
from scenarios.mutants.catalog import MUTANTS
from scenarios.play import catalog_files, runner
from scenarios.report import waiting, write
from scenarios.report.tables import Tables
from scenarios.scenario import CUT_OVER_CHECKS, PER_CHANGE, WORK_TO_COME, Engine, Scenario
from scenarios.workloads.registry import WORKLOADS

DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT = DOCS / "reference" / "scenarios-reference.md"
# A run takes 15 to 25 s on two cores, and the subset shall take five to six minutes.
MOST_RUNS_PER_CHANGE = 15

CATALOG = catalog_files.paths()
SCENARIOS = {name: catalog_files.load(path) for name, path in CATALOG.items()}


@pytest.fixture(params=list(SCENARIOS.values()), ids=list(SCENARIOS))
def scenario(request: pytest.FixtureRequest) -> Scenario:
    found: Scenario = request.param
    return found


def runs(scenarios: list[Scenario]) -> int:
    return sum(len(each.engines) for each in scenarios)


def runs_per_change(scenarios: list[Scenario]) -> int:
    return sum(engine in PER_CHANGE for each in scenarios for engine in each.engines)


def catalogue_table() -> str:
    """What stands in the document between the catalogue's marks."""
    lines = ["| | Hazard | Scenarios |", "| --- | --- | --- |"]
    for number, hazard in HAZARDS.items():
        named = [
            f"`{name}`" + (f" (waits for: {each.waits_for})" if each.waits_for else "")
            for name, each in SCENARIOS.items()
            if number in each.hazards
        ]
        lines.append(f"| {number} | {hazard} | {', '.join(named)} |")
    others = [f"`{name}`" for name, each in SCENARIOS.items() if not each.hazards]
    return "\n".join([*lines, f"| | nothing breaks, many clients write | {', '.join(others)} |"])


def test_every_hazard_has_a_scenario() -> None:
    assert list(HAZARDS) == list(range(1, 61))
    covered = Counter(hazard for each in SCENARIOS.values() for hazard in each.hazards)
    assert sorted(set(HAZARDS) - set(covered)) == []
    assert sorted(set(covered) - set(HAZARDS)) == []


def test_the_document_shows_the_catalogue_as_it_is() -> None:
    """Mended with: python -m tests.unit.scenarios.test_catalog"""
    assert catalogue_table() in DOCUMENT.read_text()


def test_the_document_names_every_workload() -> None:
    written = DOCUMENT.read_text()
    assert [name for name in WORKLOADS if f"| `{name}` |" not in written] == []


def test_a_title_is_one_sentence_that_no_other_file_has(scenario: Scenario) -> None:
    assert re.fullmatch(r"[A-Z0-9].{10,109}[^.]", scenario.title), scenario.title
    assert [each.title for each in SCENARIOS.values()].count(scenario.title) == 1


def test_a_file_is_short() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in CATALOG.items()}
    assert {name: lines for name, lines in lengths.items() if lines > 30} == {}


def test_the_name_says_whether_refusal_is_right(scenario: Scenario) -> None:
    assert scenario.name.startswith("fail_") == (scenario.expect.ending == "refused")
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", scenario.name)


def test_workload_and_points_exist(scenario: Scenario) -> None:
    assert scenario.workload.name in WORKLOADS
    for fault in scenario.faults:
        point, _, count = fault.at.partition(":")
        assert not fault.at or (point in POINTS and int(count) > 0), fault.at


def test_it_can_be_played_as_far_as_its_words_go(scenario: Scenario) -> None:
    """Also one that waits: when its work has come, nothing else is missing."""
    runner.check(scenario)


def test_the_documents_name_every_fault() -> None:
    written = DOCUMENT.read_text()
    assert [name for name in registry.fault_names() if f"`{name}`" not in written] == []


def test_the_kill_table_in_the_documents_has_every_broken_variant() -> None:
    written = DOCUMENT.read_text()
    for each in MUTANTS:
        assert f"| `{each.name}` | {each.broken} | {', '.join(each.must_catch)} |" in written, each.name


def test_two_faults_never_wait_for_the_same_moment(scenario: Scenario) -> None:
    moments = [fault.at for fault in scenario.faults if fault.at]
    if "latency" not in {fault.do for fault in scenario.faults}:
        assert len(moments) == len(set(moments))


def test_who_waits_names_the_stop_that_is_played_in_its_place_today() -> None:
    """When the work has come, that one no longer stops, which the run of the catalogue tells."""
    assert waits_in_vain(SCENARIOS) == []


def test_waiting_for_what_exists_is_noticed() -> None:
    renamed = SCENARIOS["column_renamed_and_followed"]

    def faults(**changes: Any) -> list[str]:
        return waits_in_vain({**SCENARIOS, renamed.name: replace(renamed, **changes)})

    assert faults(waits_for="repair") == [
        "column_renamed_and_followed: 'repair' is no work to come",
        "schema changes carried through: nobody waits for it",
    ]
    assert faults(until_then="column_added_in_dump") == [
        "column_renamed_and_followed: column_added_in_dump doesn't stop by name on postgresql, mariadb"
    ]
    assert faults(until_then=renamed.name) == [
        "column_renamed_and_followed: column_renamed_and_followed isn't played"
    ]
    assert faults(waits_for="", until_then="") == ["schema changes carried through: nobody waits for it"]


def waits_in_vain(scenarios: dict[str, Scenario]) -> list[str]:
    """What is wrong with those that wait, and with the list of what may be waited for."""
    found = []
    for each in scenarios.values():
        if not each.waits_for:
            continue
        today = scenarios.get(each.until_then)
        if each.waits_for not in WORK_TO_COME:
            found.append(f"{each.name}: {each.waits_for!r} is no work to come")
        elif today is None or today.waits_for:
            found.append(f"{each.name}: {each.until_then} isn't played")
        elif today.expect.ending != "halts" or not set(each.engines) <= set(today.engines):
            found.append(f"{each.name}: {each.until_then} doesn't stop by name on {', '.join(each.engines)}")
    awaited = {each.waits_for for each in scenarios.values()}
    return found + [f"{work}: nobody waits for it" for work in WORK_TO_COME if work not in awaited]


def test_the_report_lists_all_that_wait(tmp_path: Path) -> None:
    table = waiting(SCENARIOS.values())
    assert table is not None
    assert {row.cells[0] for row in table.rows} == {
        each.name for each in SCENARIOS.values() if each.waits_for
    }
    said = write([], tmp_path, Tables(waiting=table))
    page = (tmp_path / "report.html").read_text()
    told = json.loads((tmp_path / "report.json").read_text())["waiting"]["rows"]
    for each, row in zip(table.rows, told, strict=True):
        assert f"waits     {each.cells[0]}: {each.cells[2]}" in said
        assert f"<td>{each.cells[2]}</td><td>{each.cells[3]}</td>" in page
        assert row["scenario"] == each.cells[0]
        assert row["outcome"] is None
    assert waiting([SCENARIOS["bank_transfers"]]) is None


def test_a_stop_is_judged_by_all_but_convergence(scenario: Scenario) -> None:
    """What stopped early cannot have converged; what goes on must."""
    if scenario.expect.ending == "halts":
        assert not {"D7", "S1", "S6"} & set(scenario.expect.checks)
        least = [{"D1", "D4"}, {"D1", "D8"}] if scenario.cut_over is None else [{"S2", "S3", "S4", "S5"}]
        assert any(codes <= set(scenario.expect.checks) for codes in least)
    if scenario.expect.ending in ("resumes", "restarts"):
        wanted = {"D1", "D3", "D6", "D8"}
        if scenario.cut_over is not None:
            wanted = {"S1", "S2", "S3", "S4", "S5"} | (set() if scenario.cut_over.given_up else {"S6"})
        assert wanted <= set(scenario.expect.checks) <= {*wanted, *CUT_OVER_CHECKS, "D2", "D4", "D5", "D7"}


def test_sql_on_tracked_rows_gives_them_a_provenance_of_their_own(scenario: Scenario) -> None:
    """Two versions of a row with one provenance can't be told apart; 90 and above belong to no writer."""
    for fault in scenario.faults:
        statements = fault.options.get("sql", [])
        for statement in [statements] if isinstance(statements, str) else statements:
            if fault.options["side"] == "source" and statement.startswith("INSERT INTO register"):
                assert re.search(r", 9\d, \d+\)", statement), statement
            if fault.options["side"] == "source" and statement.startswith("UPDATE register"):
                assert re.search(r"writer = 9\d, write_no = (id|\d+)", statement), statement


def test_faults_fire_while_the_writers_write(scenario: Scenario) -> None:
    for fault in scenario.faults:
        assert fault.after_changes < scenario.workload.changes


def test_the_subset_for_every_change_is_varied_and_affordable() -> None:
    subset = [each for each in SCENARIOS.values() if each.per_change]
    assert 8 <= len(subset) <= 12
    assert runs_per_change(subset) <= MOST_RUNS_PER_CHANGE
    assert not any(each.waits_for for each in subset)
    assert set(PER_CHANGE) <= {engine for each in subset for engine in each.engines}
    assert len({each.workload.name for each in subset}) >= 5


def test_the_subset_leaves_mysql_out_unless_it_is_asked_for() -> None:
    def engines(*names: str, engine: Engine | None = None, all_: bool = False) -> set[str]:
        return {job.engine for job in commands._jobs(names, True, all_, engine, 1, 0)}

    assert engines() == set(PER_CHANGE)
    assert engines(engine="mysql") == {"mysql"}
    assert engines(all_=True) == engines("concurrent_writes") == {"postgresql", "mariadb", "mysql"}


def test_most_of_the_catalogue_runs_today() -> None:
    ready = [each for each in SCENARIOS.values() if not each.waits_for]
    hazards = {hazard for each in ready for hazard in each.hazards}
    assert len(hazards) >= 50
    assert runs(ready) >= 100


def write_catalogue() -> None:
    """Puts the table into the document."""
    begin, end = "<!-- catalogue: begin -->\n", "<!-- catalogue: end -->"
    head, _, rest = DOCUMENT.read_text().partition(begin)
    DOCUMENT.write_text(f"{head}{begin}\n{catalogue_table()}\n\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    write_catalogue()
