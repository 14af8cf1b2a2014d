"""A scenario of a cut-over on real servers: played, judged, replayed, and a bundle that was tampered with."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.play import bundle, catalog_files
from scenarios.play.replay import replay
from scenarios.play.run_result import RESUMES
from scenarios.play.runner import run
from scenarios.scenario import PER_CHANGE, Engine
from verify.history.result import Outcome
from verify.two_sides import file

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("engine", PER_CHANGE)
def test_a_switch_that_is_undone_is_played_judged_and_replayed(tmp_path: Path, engine: Engine) -> None:
    path = catalog_files.path_of("hook_fails_in_the_switch")
    result = run(catalog_files.load(path), engine, 2, tmp_path, path.read_text())
    print((result.bundle / bundle.LOG).read_text()[-3000:], result.reason)
    assert (result.ending, result.error, result.reason) == (RESUMES, "", "")
    assert [check.code for check in result.checks] == [*result.scenario.expect.checks, "STEPS"]
    assert result.counts["refused by a fence"] > 0
    replayed = replay(result.bundle)
    assert replayed.same
    assert replayed.found.outcome is Outcome.HOLDS

    tampered = tmp_path / "tampered"
    shutil.copytree(result.bundle, tampered)
    history = file.load(tampered)
    old, new = history.last
    file.save(replace(history, last=(old, replace(new, keys=new.keys[1:]))), tampered)
    assert not replay(tampered).same
    assert replay(tampered).found.outcome is Outcome.VIOLATED
