"""The new personnel schema on PostgreSQL: the revisions of the story, whose own target is MySQL or MariaDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.stories import employees
from scenarios.stories.employees.mapping import mapping
from tests.integration.stories.story_mapping import migrate
from tests.servers import Database

pytestmark = pytest.mark.integration

COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, generation_expression <> '', collation_name
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"""


def test_the_revisions_make_the_schema_on_postgresql_too(new_pg: Database) -> None:
    project = Path(str(employees.__file__)).parent
    migrate(new_pg, project)
    found = {(table, column): rest for table, column, *rest in new_pg.query(COLUMNS)}
    assert {table for table, _ in found} == {target.name for target in mapping} | {"gender"}
    assert found["person", "person_id"] == ["bytea", "NO", None, None]
    assert found["person", "full_name"] == ["character varying", "YES", True, "C"]
    assert found["department_stats", "title_mix"] == ["jsonb", "NO", None, None]
    assert found["employment", "dept_id"] == ["integer", "NO", None, None]
    assert found["employment", "is_manager"] == ["boolean", "NO", None, None]
    assert new_pg.query("SELECT code, label FROM gender ORDER BY 1") == [("F", "Female"), ("M", "Male")]
    migrate(new_pg, project, "base")
    assert new_pg.query(COLUMNS) == []
