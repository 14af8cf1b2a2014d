"""The demo project's parts name the same tables."""

from __future__ import annotations

import tomllib
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from scenarios.flights import oracle
from transforms import load_mapping

PROJECT = Path(oracle.__file__).parent


def test_mapping_and_oracle_cover_the_same_tables() -> None:
    mapping = load_mapping(PROJECT / "mapping.py")
    assert {target.name for target in mapping} == set(oracle.targets())
    assert len(oracle.targets()) == 12


def test_the_revisions_are_one_line_with_one_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "alembic"))
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert revisions == ["0004", "0003", "0002", "0001"]


def test_the_revisions_make_every_mapped_table() -> None:
    source = "".join(path.read_text() for path in (PROJECT / "alembic" / "versions").glob("*.py"))
    assert [name for name in oracle.targets() if f'"{name}"' not in source] == []


def test_the_project_file_names_what_is_there() -> None:
    settings = tomllib.loads((PROJECT / "migration.toml").read_text())
    assert (PROJECT / settings["migration"]["mapping"]).is_file()
    assert (PROJECT / settings["migration"]["alembic"] / "env.py").is_file()
    assert "password" not in {key for section in settings.values() for key in section}


def test_the_oracle_shares_no_code_with_the_mapping() -> None:
    source = (PROJECT / "oracle.py").read_text()
    assert "import mapping" not in source
    assert "transforms" not in source
    assert "pyspark" not in source
