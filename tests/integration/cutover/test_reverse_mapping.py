"""``init --reverse`` and ``check --reverse`` on real servers: what is written, and what comes back of real rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.cli import cli
from tests.integration.cutover.two_way import TwoWay, made

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture(params=["pg-pg", "maria-pg", "pg-maria", "maria-maria"])
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> TwoWay:
    return made(request.param, request, tmp_path / "project")


def test_what_follows_is_written_and_comes_back(project: TwoWay, capfd: pytest.CaptureFixture[str]) -> None:
    file = project.config.parent / "reverse.py"
    file.unlink()
    assert not cli.main(["init", "--reverse", str(file.parent)], standalone_mode=False)
    print(file.read_text())
    code = project.command("check", "--reverse")
    print(code)
    out = capfd.readouterr().out
    print(out)
    assert 0
