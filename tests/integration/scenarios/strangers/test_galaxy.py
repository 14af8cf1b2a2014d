"""Galaxy's schema, more than 180 tables with many foreign keys, as its package on PyPI declares it: a project holds.

The models are Galaxy's (MIT). The test installs them into an environment of its own, and keeps nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.scenarios.strangers.survives import survives

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROJECT = Path(__file__).parent / "galaxy_project"
DDL = """
from galaxy.model import mapper_registry
from sqlalchemy import create_mock_engine

def show(statement, *_, **__):
    print(str(statement.compile(dialect=engine.dialect)).strip() + ";")

engine = create_mock_engine("postgresql+psycopg://", show)
mapper_registry.metadata.create_all(engine, checkfirst=False)
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The statements that make the tables on PostgreSQL."""
    folder = tmp_path_factory.mktemp("galaxy")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "galaxy-data", "psycopg"],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"galaxy-data can't be had: {installed.stderr.strip()[-200:]}")
    return subprocess.run([python, "-c", DDL], capture_output=True, text=True, check=True).stdout


def test_a_galaxy_survives(schema: str, tmp_path: Path) -> None:
    assert schema.count("CREATE TABLE") > 180
    survives(PROJECT, tmp_path, schema, "postgresql")
