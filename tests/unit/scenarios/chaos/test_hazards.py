"""Hazards by plain names: which fit a project, which can be in one run, and what is said of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.chaos import commands, play
from scenarios.chaos import hazards as named
from scenarios.chaos.hazards import chosen, hazards, profile
from scenarios.chaos.profiles import PROFILES
from scenarios.chaos.stage import Old
from scenarios.commands import scenario
from scenarios.play import catalog_files
from scenarios.play.run_result import RunResult
from tests.unit.scenarios.chaos.test_plugin import SETTINGS
from verify.history.result import Outcome


def test_the_list_has_every_scenario_of_the_catalog_with_its_sentence() -> None:
    done = CliRunner().invoke(scenario, ["run", "--hazard", "list"])
    assert done.exit_code == 0
    for one in catalog_files.all():
        assert f"{one.name} " in done.output
        assert one.title in done.output
    assert "Not for projects:" in done.output


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_what_does_not_touch_the_old_side_is_for_every_engine_of_it(engine: str) -> None:
    found = chosen(["source_killed_in_chunk", "reset_after_commit", "zombie"], engine)
    assert [fault.do for fault in found.faults] == ["kill_server", "reset_around_commit", "stop_continue"]
    assert found.server == {}, "a setting of another engine's server"
    by_name = {one.name: one for one in hazards()}
    for name in ("slot_dropped", "source_half_open", "toast_unchanged", "kill_around_acknowledgement"):
        assert engine not in by_name[name].engines


def test_faults_of_several_hazards_are_placed_in_one_run() -> None:
    found = chosen(["source_killed_in_chunk", "reset_after_commit", "zombie"], "postgresql")
    assert [fault.do for fault in found.faults] == ["kill_server", "reset_around_commit", "stop_continue"]
    assert found.server == {"wal_sender_timeout": "4s"}
    assert set(found.hazards) == {12, 24, 49}
    assert chosen([], "mariadb").faults == ()


@pytest.mark.parametrize(
    ("names", "engine", "said"),
    [
        (["sourc_killed"], "postgresql", "there is no hazard"),
        (["target_locked"], "postgresql", "tables of its own workload"),
        (["log_purged"], "mariadb", "stop by name"),
        (["zookeeper_split_brain"], "postgresql", "ZooKeeper"),
        (["source_half_open"], "mariadb", "it is for postgresql"),
        (["zombie", "pause"], "postgresql", "can't be in one run"),
        (["kill_after_low_watermark", "kill_high_watermark_unseen"], "postgresql", "can't be in one run"),
    ],
)
def test_a_hazard_that_cannot_be_placed_is_refused_by_name(names: list[str], engine: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        chosen(names, engine)
    assert said in str(refused.value)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb", "mysql"])
def test_profiles_have_runs_that_can_be_made_and_leave_nothing_out(engine: str) -> None:
    fit = {one.name for one in hazards() if not one.left_out and engine in one.engines}
    assert {one.name for one in hazards() if not one.left_out and engine in one.scenario.engines} <= fit
    for name, plan in PROFILES.items():
        runs = profile(name, engine)
        for run in runs:
            chosen(run, engine)
            assert len(run) <= plan.together
        placed = [one for run in runs for one in run]
        assert set(placed) == (fit if plan.hazards is None else fit & set(plan.hazards))
        assert len(placed) == len(set(placed)) * (2 if plan.alone else 1)
        assert ([] in runs) == plan.alone
        assert len({str(profile(name, engine, seed)[0]) for seed in range(1, len(runs) + 1)}) == len(
            {str(run) for run in runs}
        )
    assert len(profile("quick", engine)) == 1


def test_the_page_has_the_table_of_profiles() -> None:
    page = (Path(__file__).parents[4] / "docs/how-to/mapping/chaos.md").read_text()
    for name, plan in PROFILES.items():
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2] == str(plan.changes)
        assert cells[3] == ("none" if plan.minutes is None else f"{plan.minutes:g} min")
        assert all(f"`{one}`" in cells[1] for one in plan.hazards or ())


@pytest.mark.parametrize(("minutes", "made"), [(None, 3), (1e-9, 1)])
def test_runs_that_a_time_budget_leaves_undone_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float | None, made: int
) -> None:
    """Held runs before the end of the budget don't make the whole of it hold."""
    ran: list[tuple[str, ...]] = []

    def run(order: play.Order, _: object) -> RunResult:
        ran.append(order.under)
        return replace(play.not_run(order, ""), outcome=Outcome.HOLDS)

    monkeypatch.setattr(play, "run", run)
    monkeypatch.setattr(named, "profile", lambda *_: [["pause"], ["clock_behind"], []])
    (tmp_path / "migration.toml").write_text(SETTINGS)
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (id int PRIMARY KEY)")
    code = commands.run_project(
        1, tmp_path / "out", str, project=tmp_path, old_schema="schema.sql", sample=None, rows=1, hazards=[],
        profile="nightly", minutes=minutes, changes=None, clients=1, weights=None, query_log=None,
    )  # fmt: skip
    assert len(ran) == made
    assert code == (0 if made == 3 else 3)
    suites = ElementTree.parse(tmp_path / "out" / "report" / "junit.xml").getroot()
    errors = [str(one.get("message")) for one in suites.iter("error")]
    assert len(errors) == 3 - made
    assert all("not run: the time budget" in one for one in errors)
    page = (tmp_path / "out" / "report" / "report.html").read_text()
    assert page.count("--hazard clock_behind --changes 1000") >= 1


def test_the_command_that_makes_a_run_again_has_its_rows_and_clients(tmp_path: Path) -> None:
    """Other rows of the start would make another run of the same seed."""
    (tmp_path / "migration.toml").write_text(SETTINGS)
    old = Old("schema.sql", {"t": tmp_path / "t.csv"}, 20)
    order = play.Order(tmp_path / "migration.toml", old, clients=2, out=tmp_path / "out")
    said = json.loads((play.not_run(order, "").bundle / "result.json").read_text())["command"]
    assert said.endswith(f"--seed 1 --clients 2 --rows 20 --sample {tmp_path / 't.csv'}")


def test_a_name_of_many_hazards_fits_a_folder() -> None:
    long = chosen(["kill_before_target_commit", "source_killed_in_chunk", "clock_behind", "kill_while_emitting",
                   "target_killed_with_rows_loaded", "source_refuses_connections"], "postgresql")  # fmt: skip
    assert len(long.name) < 150
    assert long.name.endswith("5_more")


@pytest.mark.parametrize(
    "words",
    [["--project", ".", "zombie"], ["--hazard", "zombie"], ["--project", ".", "--hazard", "zombie"]],
)
def test_a_project_needs_its_old_schema_and_no_scenario(words: list[str]) -> None:
    done = CliRunner().invoke(scenario, ["run", *words])
    assert isinstance(done.exception, ConfigError)
