"""A project of its own runs under hazards by its schema alone; faults of the mapping and of the target are caught."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.chaos import play
from scenarios.chaos.incident.failure import Judgement
from scenarios.chaos.incident.incident_file import unpacked
from scenarios.chaos.incident.of_run import NAME
from scenarios.chaos.incident.replay import replay
from scenarios.chaos.stage import Old, Stage
from scenarios.faults.session import execute
from verify.history.result import Outcome

pytestmark = [pytest.mark.integration]

PROJECT = Path(__file__).parent / "chaos_project"
UNDER = {
    "postgresql": ("source_killed_in_chunk", "reset_after_commit", "kill_after_target_commit"),
    "mariadb": ("source_killed_in_chunk", "reset_after_commit", "zombie"),
}


def project(folder: Path, kind: str, planted: tuple[str, str] = ("", "")) -> Path:
    """The project with an old side of that engine, and a piece of its mapping replaced."""
    shutil.copytree(PROJECT, folder / "project")
    config = folder / "project" / "migration.toml"
    config.write_text(config.read_text().replace('"postgresql"', f'"{kind}"', 1))
    mapping = folder / "project" / "mapping.py"
    right, wrong = planted
    assert right in mapping.read_text()
    mapping.write_text(mapping.read_text().replace(right, wrong) if right else mapping.read_text())
    return config


def order(folder: Path, kind: str, planted: tuple[str, str] = ("", "")) -> play.Order:
    return play.Order(
        project(folder, kind, planted),
        Old(str(PROJECT / "schema.sql"), number=40),
        UNDER[kind],
        changes=500,
        out=folder / "out",
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_project_holds_under_hazards(tmp_path: Path, kind: str) -> None:
    found = play.run(order(tmp_path, kind))
    assert found.outcome is Outcome.HOLDS, (found.reason, found.error)
    assert {check.code: check.outcome for check in found.checks} == dict.fromkeys(
        ("D1", "D3", "D6", "D7", "D8"), Outcome.HOLDS
    )
    assert found.counts["processes"] > 1, "the pipeline was never killed"
    assert found.counts["refused"] < 0.2 * found.counts["client transactions"]


def _planted(stage: Stage) -> None:
    execute(
        stage.target.direct,
        ["UPDATE person SET name = 'planted' WHERE person_id = (SELECT min(person_id) FROM person)"],
    )


def _lost(stage: Stage) -> None:
    last = "SELECT max(purchase_id) FROM purchase"
    execute(stage.target.direct, [f"DELETE FROM purchase WHERE purchase_id = ({last})"])


@pytest.mark.slow
@pytest.mark.parametrize(("tamper", "said"), [(_planted, "name is planted"), (_lost, "purchase")])
def test_rows_that_the_migration_did_not_make_are_found(tmp_path: Path, tamper: object, said: str) -> None:
    assert callable(tamper)
    one = replace(order(tmp_path, "postgresql"), under=(), changes=150, tamper=tamper)
    found = play.run(one)
    broken = {check.code: check for check in found.checks if check.outcome is Outcome.VIOLATED}
    assert found.outcome is Outcome.VIOLATED
    assert {"D6", "D7"} <= broken.keys()
    assert said in broken["D7"].witnesses[0].headline


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_fault_of_the_mapping_that_the_sample_does_not_show_is_found(tmp_path: Path, kind: str) -> None:
    """The run that shows it becomes an incident, which shows it again, and not in the repaired project."""
    planted = ('F.coalesce(F.lower("email"), F.lit("unknown"))', 'F.lower("email")')
    found = play.run(replace(order(tmp_path, kind, planted), under=()))
    assert found.outcome is Outcome.VIOLATED
    assert "expected ending: resumes; found: halts" in found.reason
    assert "email" in found.error
    incident = unpacked(found.bundle / NAME)
    again = replay(incident)
    assert again.judgement is Judgement.REPRODUCED, again.reason
    mended = replay(incident, project(tmp_path / "mended", kind))
    assert mended.judgement is Judgement.NOT_REPRODUCED, mended.reason
