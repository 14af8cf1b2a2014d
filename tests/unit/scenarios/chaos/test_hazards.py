"""Hazards by plain names: which fit a project, which can be in one run, and what is said of the others."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.chaos.hazards import QUICK, chosen, hazards, profile
from scenarios.commands import scenario
from scenarios.play import catalog_files


def test_the_list_has_every_scenario_of_the_catalog_with_its_sentence() -> None:
    done = CliRunner().invoke(scenario, ["run", "--hazard", "list"])
    assert done.exit_code == 0
    for one in catalog_files.all():
        assert f"{one.name} " in done.output
        assert one.title in done.output
    assert "Not for projects:" in done.output


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
        (["zombie"], "mariadb", "it is for postgresql"),
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
    fit = {one.name for one in hazards() if not one.left_out and engine in one.scenario.engines}
    for name in ("quick", "nightly", "all"):
        runs = profile(name, engine)
        for run in runs:
            chosen(run, engine)
        placed = {one for run in runs for one in run}
        assert placed == (fit if name != "quick" else fit & set(QUICK))
    assert [] in profile("all", engine)


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
