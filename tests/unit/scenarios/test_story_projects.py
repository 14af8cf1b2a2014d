"""The parts of each story's project name the same tables."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from migrator.cli.init.init import _server
from migrator.model.reach import spoken
from migrator.model.table import Column, TableId, TableSchema
from scenarios.database import Database
from scenarios.stories.employees import oracle as employees
from scenarios.stories.sakila import oracle as sakila
from transforms import load_mapping
from transforms.analysis.grain import reaches


@dataclass(frozen=True)
class Story:
    """A project, and what it must have."""

    oracle: ModuleType
    schema: str
    constant: str
    revisions: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The project."""
        return Path(str(self.oracle.__file__)).parent

    def tables(self) -> set[str]:
        """The new tables, as the story gives them."""
        return set(re.findall(r"^CREATE TABLE (\w+)", (self.folder / "data" / self.schema).read_text(), re.M))


STORIES = [
    Story(sakila, "new.pg.sql", "film_rating", ("0003", "0002", "0001")),
    Story(employees, "new.mysql.sql", "gender", ("0002", "0001")),
]


@pytest.fixture(params=STORIES, ids=lambda story: story.folder.name)
def story(request: pytest.FixtureRequest) -> Story:
    """Each story in turn."""
    found: Story = request.param
    return found


def test_the_mapping_makes_every_table_without_constant_rows(story: Story) -> None:
    mapping = load_mapping(story.folder / "mapping.py")
    assert {target.name for target in mapping} == story.tables() - {story.constant}
    assert len(story.tables()) > 10


def test_the_revisions_are_one_line_that_makes_every_table(story: Story) -> None:
    config = Config()
    config.set_main_option("script_location", str(story.folder / "alembic"))
    assert tuple(s.revision for s in ScriptDirectory.from_config(config).walk_revisions()) == story.revisions
    made = "".join(path.read_text() for path in (story.folder / "alembic" / "versions").glob("*.py"))
    assert set(re.findall(r"^CREATE TABLE (\w+)", made, re.M)) == story.tables()


def test_the_project_file_names_what_is_there(story: Story) -> None:
    settings = tomllib.loads((story.folder / "migration.toml").read_text())
    assert (story.folder / settings["migration"]["mapping"]).is_file()
    assert (story.folder / settings["migration"]["alembic"] / "env.py").is_file()
    assert "password" not in {key for section in settings.values() for key in section}


def test_the_data_come_with_their_licence(story: Story) -> None:
    for name in ("LICENSE.txt", "SOURCE.md", "old.mysql.sql.xz", "extra_rows.mysql.sql"):
        assert (story.folder / "data" / name).stat().st_size > 500


def test_the_oracle_shares_no_code_with_the_mapping(story: Story) -> None:
    words = story.folder.parent / "words.py"
    for source in (Path(str(story.oracle.__file__)).read_text(), words.read_text()):
        assert "import mapping" not in source
        assert "transforms" not in source
        assert "pyspark" not in source


def test_a_title_reaches_the_departments_of_everybody_with_a_title_spelled_alike() -> None:
    """``department_stats`` shows a title by the smallest text of its code, whoever holds it."""
    mapping = load_mapping(Path(str(employees.__file__)).parent / "mapping.py")
    target = mapping["department_stats"]
    numbers = ("emp_no", "dept_no", "title")
    columns = tuple(Column(name, "int32", False, "int") for name in numbers)
    schemas = {name: TableSchema(TableId("old", name), columns, numbers) for name in target.sources}
    [reach] = reaches(target, schemas, ())
    index = next(number for number, node in enumerate(reach.nodes) if node.role == "same_title")
    assert [reach.nodes[step].role for step in reach.path(index)] == [
        "same_title",
        "title",
        "dept_emp",
        "department",
    ]
    assert [spoken(name) for name in reach.nodes[index].columns] == ["code"]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_the_url_of_a_story_s_database_can_be_pasted(kind: Literal["postgresql", "mariadb", "mysql"]) -> None:
    """``migrator init`` takes it for what it is: a MariaDB isn't a MySQL."""
    database = Database(kind, "127.0.0.1", 3307, "new shop", "root")
    read = _server("--source-url", database.url(), "")
    assert (read.kind, read.host, read.port, read.database, read.user) == (
        kind,
        "127.0.0.1",
        3307,
        "new shop",
        "root",
    )
