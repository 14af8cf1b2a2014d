"""A project of its own runs under hazards by its schema alone; faults of the mapping and of the target are caught."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.chaos import play
from scenarios.chaos.hazards import chosen
from scenarios.chaos.stage import Old, Stage
from scenarios.faults.session import execute
from tests.integration import shop
from verify.history.result import Outcome

pytestmark = [pytest.mark.integration]

SETTINGS = """
[migration]
name = "shop"
[source]
kind = "{kind}"
host = "old.example.org"
database = "old"
user = "migrator"
password_env = "NOT_SET_ANYWHERE"
[target]
kind = "{target}"
host = "new.example.org"
database = "new"
user = "migrator"
password_env = "NOT_SET_ANYWHERE"
"""
UNDER = {
    "postgresql": ["source_killed_in_chunk", "reset_after_commit", "kill_after_target_commit"],
    "mariadb": ["source_killed_in_chunk", "kill_after_target_commit"],
}


def order(folder: Path, kind: str, target: str = "postgresql") -> play.Order:
    project = folder / "project"
    shutil.copytree(shop.HERE, project)
    (project / "migration.toml").write_text(SETTINGS.format(kind=kind, target=target))
    old = folder / "old.sql"
    old.write_text(";\n".join((*shop._CREATE, "")))
    return play.Order(
        project / "migration.toml",
        Old(str(old), number=40),
        chosen(UNDER[kind], kind),
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
    execute(stage.target.direct, ["UPDATE label SET name = 'planted' WHERE category_id = (SELECT min(category_id) FROM label)"])


def _lost(stage: Stage) -> None:
    execute(stage.target.direct, ["DELETE FROM buyer WHERE customer_id = (SELECT max(customer_id) FROM buyer)"])


@pytest.mark.slow
@pytest.mark.parametrize(("tamper", "said"), [(_planted, "name is planted"), (_lost, "buyer")])
def test_rows_that_the_migration_did_not_make_are_found(tmp_path: Path, tamper: object, said: str) -> None:
    assert callable(tamper)
    one = replace(order(tmp_path, "postgresql"), scenario=chosen([], "postgresql"), changes=150, tamper=tamper)
    found = play.run(one)
    broken = {check.code: check for check in found.checks if check.outcome is Outcome.VIOLATED}
    assert found.outcome is Outcome.VIOLATED
    assert {"D6", "D7"} <= broken.keys()
    assert said in broken["D7"].witnesses[0].headline
