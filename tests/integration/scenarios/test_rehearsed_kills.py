"""A switch of a rehearsal whose leaders are killed one after the other: each goes on with what the last one began."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.model.cutover.record import Side
from migrator.wiring.target import peek
from scenarios.rehearsal.kills import killed
from scenarios.rehearsal.tool import Tool
from tests.integration.cutover.led import open_side
from tests.integration.cutover.test_cutover import begun

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PATIENT = "\n[cutover]\npause_s = 600.0\nmax_lag_s = 120.0\n"


def test_leaders_that_are_killed_in_turn_end_with_one_open_side(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path, PATIENT)
    settings = configuration.load(project.config)
    tool = Tool(project.config, tmp_path / "run.log")
    back = way_back(settings)
    try:
        points = ("begun", "draining_done", "opening")
        said = list[str]()
        killed(
            tool,
            settings,
            "start",
            lambda: (found := peek(back)) is not None and found.checkpoint is not None,
            said.append,
            points,
        )
        assert open_side(project) is Side.NEW
        assert [line.split(":")[0] for line in said] == [f"killed at {point}" for point in points]
        assert tool.leader.starts == len(points) + 1
    finally:
        tool.leader.close()
