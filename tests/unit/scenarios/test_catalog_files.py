"""Scenario files: what they become, and that every mistake in one is named with its line, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.errors import ConfigError
from scenarios.play import catalog_files
from scenarios.scenario import Expectation, FaultSpec, Scenario, WorkloadSpec

WHOLE = """\
title: The source is killed while a chunk is being read
hazards: [12]
engines: [postgresql, mariadb]
workload: {name: registers, keys: 400, changes: 1500, rate_per_s: 300, spread: wide}
faults:
  - {do: kill_server, side: source, at: "capture.chunk:2", heal_after_s: 1}
  - do: sql
    side: target
    after_changes: 100
    sql: ["SELECT 1", "SELECT 2"]
expect: {ending: halts, error: 'gap|purged', checks: [D1, D8]}
settings:
  capture: {chunk_rows: 20, linger_s: 0.5}
  spark: {conf: {spark.ui.enabled: "false"}}
server: {max_slot_wal_keep_size: 1MB, wal_keep_size: 0, fsync: on}
waits_for: schema changes carried through
per_change: true
until_then: column_dropped_in_dump
"""


def file(folder: Path, text: str, name: str = "kill_source.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def problems(folder: Path, text: str, name: str = "kill_source.yaml") -> str:
    with pytest.raises(ConfigError) as caught:
        catalog_files.load(file(folder, text, name))
    assert caught.value.remedy
    assert str(folder) in caught.value.what
    return caught.value.where


def test_every_key_becomes_its_field(tmp_path: Path) -> None:
    assert catalog_files.load(file(tmp_path, WHOLE)) == Scenario(
        name="kill_source",
        title="The source is killed while a chunk is being read",
        hazards=(12,),
        engines=("postgresql", "mariadb"),
        workload=WorkloadSpec(
            "registers", keys=400, changes=1500, rate_per_s=300, options={"spread": "wide"}
        ),
        faults=(
            FaultSpec("kill_server", at="capture.chunk:2", heal_after_s=1.0, options={"side": "source"}),
            FaultSpec("sql", after_changes=100, options={"side": "target", "sql": ["SELECT 1", "SELECT 2"]}),
        ),
        expect=Expectation("halts", "gap|purged", ("D1", "D8")),
        settings={
            "capture": {"chunk_rows": 20, "linger_s": 0.5},
            "spark": {"conf": {"spark.ui.enabled": "false"}},
        },
        server={"max_slot_wal_keep_size": "1MB", "wal_keep_size": "0", "fsync": "on"},
        waits_for="schema changes carried through",
        until_then="column_dropped_in_dump",
        per_change=True,
    )


def test_what_is_left_out_has_the_defaults(tmp_path: Path) -> None:
    found = catalog_files.load(file(tmp_path, "title: t\nworkload: {name: bank}\n"))
    assert found == Scenario("kill_source", "t", WorkloadSpec("bank"))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("hazards: [12]", "hazard: [12]", 2, "hazard: unknown key; there are title, workload, hazards"),
        ("hazards: [12]", "hazards: 12", 2, "hazards: is not a list"),
        ("hazards: [12]", "hazards: [twelve]", 2, "hazards[1]: 'twelve' is not a whole number"),
        ("mariadb]", "oracle]", 3, "engines: oracle: engines are postgresql, mariadb"),
        ("keys: 400", "keys: many", 4, "workload.keys: 'many' is not a whole number"),
        ("keys: 400", "keys: -4", 4, "workload.keys: -4 is below 0"),
        ("name: registers, ", "", 4, "workload.name: is missing"),
        ("- {do: kill_server, ", "- {", 6, "faults[1].do: is missing"),
        ("heal_after_s: 1", "heal_after_s: soon", 6, "faults[1].heal_after_s: 'soon' is not a number"),
        ("    after_changes: 100", "    after_changes: 1\n    at: a:1", 1, "faults[2]: either `at` or"),
        (
            "ending: halts",
            "ending: stops",
            11,
            "expect.ending: 'stops' is none of resumes, restarts, halts, refused",
        ),
        ("error: 'gap|purged', ", "", 1, "expect.error: ending halts needs"),
        ("gap|purged", "gap(", 11, "expect.error: 'gap(' is no regular expression"),
        ("[D1, D8]", "[D1, D9]", 11, "expect.checks: D9: checks are D1 to D8"),
        ("checks: [D1, D8]", "verify: same", 11, "expect.verify: 'same' is none of equal, different"),
        ("checks: [D1, D8]", "verify: equal", 1, "expect.verify: only a run that catches up"),
        ("per_change: true", "per_change: yes please", 17, "per_change: 'yes please' is not true or false"),
        ("per_change: true", "title: again", 17, "title: stands there twice"),
        (
            "waits_for: schema changes carried through",
            "waits_for: repair",
            16,
            "waits_for: 'repair' is none of",
        ),
        ("until_then: column_dropped_in_dump\n", "", 1, "until_then: who waits for work to come names"),
        ("settings:", "settings: 3\nserver:", 12, "settings: is not a mapping"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in WHOLE
    assert f"line {line}: {said}" in problems(tmp_path, WHOLE.replace(old, new, 1))


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    wrong = WHOLE.replace("keys: 400", "keys: many").replace("hazards", "hazard").replace("[D1, D8]", "[]")
    assert problems(tmp_path, wrong).count("line ") == 3


def test_a_file_that_is_no_scenario(tmp_path: Path) -> None:
    assert "a scenario is a mapping" in problems(tmp_path, "- 1\n")
    assert "a scenario is a mapping" in problems(tmp_path, "")
    assert problems(tmp_path, "title: t\n  workload: {\n") == "line 2"
    assert "file name: 'Kill-It'" in problems(tmp_path, WHOLE, "Kill-It.yaml")


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml can't be read.*No such file") as caught:
        catalog_files.load(tmp_path / "nowhere.yaml")
    assert "scenario list" in caught.value.remedy
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't be read"):
        catalog_files.load(tmp_path / "binary.yaml")


def test_a_scenario_is_found_by_name_or_path(tmp_path: Path) -> None:
    assert catalog_files.load(catalog_files.path_of("concurrent_writes")).per_change
    assert catalog_files.path_of(f"{tmp_path}/own.yaml") == tmp_path / "own.yaml"
    with pytest.raises(ConfigError, match=r"there is no scenario 'nothing'.*concurrent_writes"):
        catalog_files.path_of("nothing")


def test_the_catalog_can_be_read() -> None:
    names = [scenario.name for scenario in catalog_files.all()]
    assert "concurrent_writes" in names
    assert names == sorted(names)
