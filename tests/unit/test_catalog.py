"""The catalogue of scenarios as a whole: every hazard has its file, and every file means something."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from migrator.run.steps import POINTS
from scenarios import catalog_files
from scenarios.scenario import Scenario
from scenarios.workloads.registry import WORKLOADS

HAZARDS = range(1, 59)
FEATURES = {
    "zookeeper",
    "high_availability",
    "event_log_limits",
    "mysql",
    "dump_requests",
    "xa_hold",
    "ddl_follow",
    "repair",
    "quarantine",
    "cascades",
    "mysql_target",
    "cluster",
}
"""What a later version brings; the only reasons for which a scenario may wait."""
# A run takes 15 to 25 s on two cores, and the subset shall take five to six minutes.
MOST_RUNS_PER_CHANGE = 14

CATALOG = {path.stem: path for path in sorted(catalog_files.CATALOG.glob("*.yaml"))}
SCENARIOS = {name: catalog_files.load(path) for name, path in CATALOG.items()}


@pytest.fixture(params=SCENARIOS.values(), ids=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    found: Scenario = request.param
    return found


def runs(scenarios: list[Scenario]) -> int:
    return sum(len(each.engines) for each in scenarios)


def test_every_hazard_has_a_scenario() -> None:
    covered = Counter(hazard for each in SCENARIOS.values() for hazard in each.hazards)
    assert sorted(set(HAZARDS) - set(covered)) == []
    assert sorted(set(covered) - set(HAZARDS)) == []


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


def test_two_faults_never_wait_for_the_same_moment(scenario: Scenario) -> None:
    moments = [fault.at for fault in scenario.faults if fault.at]
    if "latency" not in {fault.do for fault in scenario.faults}:
        assert len(moments) == len(set(moments))


def test_it_waits_only_for_features_that_are_to_come(scenario: Scenario) -> None:
    assert set(scenario.needs) <= FEATURES


def test_a_stop_is_judged_by_all_but_convergence(scenario: Scenario) -> None:
    """What stopped early cannot have converged; what goes on must."""
    if scenario.expect.ending == "halts":
        assert "D7" not in scenario.expect.checks
        assert {"D1", "D3", "D6", "D8"} <= set(scenario.expect.checks)
    if scenario.expect.ending == "resumes":
        assert {"D1", "D3", "D6", "D8"} <= set(scenario.expect.checks)


def test_faults_fire_while_the_writers_write(scenario: Scenario) -> None:
    for fault in scenario.faults:
        assert fault.after_changes < scenario.workload.changes


def test_the_subset_for_every_change_is_varied_and_affordable() -> None:
    subset = [each for each in SCENARIOS.values() if each.per_change]
    assert 8 <= len(subset) <= 12
    assert runs(subset) <= MOST_RUNS_PER_CHANGE
    assert not any(each.needs for each in subset)
    assert {engine for each in subset for engine in each.engines} == {"postgresql", "mariadb"}
    assert len({each.workload.name for each in subset}) >= 5


def test_most_of_the_catalogue_runs_today() -> None:
    ready = [each for each in SCENARIOS.values() if not each.needs]
    hazards = {hazard for each in ready for hazard in each.hazards}
    assert len(hazards) >= 50
    assert runs(ready) >= 100
