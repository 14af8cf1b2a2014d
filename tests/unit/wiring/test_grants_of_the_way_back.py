"""The printed grants of the way back: for an old side that has no revisions of the user's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.wiring import parts as wiring
from tests.integration.cutover.two_way import HERE


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_no_right_is_asked_for_on_the_table_of_revisions(kind: str, tmp_path: Path) -> None:
    for name in ("mapping.py", "reverse.py"):
        shutil.copy(HERE / name, tmp_path)
    side = f'kind = "{kind}"\ndatabase = "shop"\nuser = "someone"\n'
    config = tmp_path / "migration.toml"
    config.write_text(f'[migration]\nname = "shop"\n[source]\n{side}[target]\n{side}')
    there = configuration.load(config, environment={})
    assert any("alembic_version" in one for one in wiring.grants(there)[1].needed)
    assert not any("alembic_version" in one for one in wiring.grants(way_back(there))[1].needed)
