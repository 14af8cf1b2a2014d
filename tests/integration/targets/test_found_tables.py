"""The revision of a project that began from tables: it makes them on an empty database, nothing where they are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from migrator.errors import ConfigError, TargetError
from migrator.schema import Manner, target_head_problem, upgrade_user_target
from migrator.schema.user_upgrade import user_sql
from tests.integration.targets.test_target_schema import revisions as revisions
from tests.integration.targets.test_target_schema import url_of
from tests.servers import Database

pytestmark = pytest.mark.integration

DUMPS = {
    "postgresql": """
--
-- PostgreSQL database dump
--
\\restrict abc
SET statement_timeout = 0;
SET lock_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA public;
CREATE TYPE public.mood AS ENUM ('100%', 'b;c');
ALTER TYPE public.mood OWNER TO nobody_here;
CREATE TABLE public.parent (id integer NOT NULL, mood public.mood DEFAULT '100%'::public.mood);
CREATE TABLE public.child (id integer NOT NULL, parent_id integer);
ALTER TABLE ONLY public.parent ADD CONSTRAINT parent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.child ADD CONSTRAINT child_fkey FOREIGN KEY (parent_id) REFERENCES public.parent(id);
\\unrestrict abc
""",
    "mariadb": """
/*!40101 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
CREATE TABLE `child` (`id` int NOT NULL, `parent_id` int, KEY (`parent_id`),
  CONSTRAINT `child_fkey` FOREIGN KEY (`parent_id`) REFERENCES `parent` (`id`));
CREATE TABLE `parent` (`id` int NOT NULL, `mood` enum('100%','b;c') DEFAULT '100%', PRIMARY KEY (`id`));
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The revisions as ``migrator init`` writes them for two URLs."""
    folder, templates = tmp_path / "alembic", files("migrator.cli.init.template")
    (folder / "versions").mkdir(parents=True)
    (folder / "env.py").write_text((templates / "env.py.txt").read_text())
    (folder / "versions" / "0001_new_schema.py").write_text((templates / "found_revision.py.txt").read_text())
    return folder


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_an_empty_database_gets_the_tables_of_the_dump(
    request: pytest.FixtureRequest, project: Path, kind: str
) -> None:
    new: Database = request.getfixturevalue("new_pg" if kind == "postgresql" else "new_maria")
    (project / "versions" / "0001_new_schema.sql").write_text(DUMPS[kind])
    assert upgrade_user_target(url_of(new), project)[0].name == "0001"
    new.execute("INSERT INTO parent (id) VALUES (1)", "INSERT INTO child VALUES (1, 1)")
    assert new.query("SELECT mood FROM parent") == [("100%",)]
    assert new.query("SELECT version_num FROM alembic_version") == [("0001",)]


def test_where_tables_are_nothing_is_made(new_pg: Database, project: Path) -> None:
    new_pg.execute("CREATE TABLE parent (id int)")
    assert user_sql(url_of(new_pg), project).count("CREATE TABLE") == 1, "that of the revisions alone"
    assert upgrade_user_target(url_of(new_pg), project), "without the file, too"
    assert new_pg.query("SELECT count(*) FROM pg_tables WHERE tablename = 'child'") == [(0,)]


def test_an_empty_database_without_the_dump_is_refused_with_the_command_that_writes_it(
    new_pg: Database, project: Path
) -> None:
    with pytest.raises(ConfigError, match=r"isn't written down(.|\n)*pg_dump -s(.|\n)*0001_new_schema.sql"):
        upgrade_user_target(url_of(new_pg), project)
    assert new_pg.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_revisions_count_as_run_where_a_file_has_made_their_tables(
    request: pytest.FixtureRequest, revisions: Path, kind: str
) -> None:
    """Those that come after what is noted run: the file is of an older state then."""
    new: Database = request.getfixturevalue("new_pg" if kind == "postgresql" else "new_maria")
    first = "CREATE TABLE first (id int PRIMARY KEY)"
    new.execute(first)
    with pytest.raises(TargetError, match=r"revision one can't be run(.|\n)*already exists"):
        upgrade_user_target(url_of(new), revisions)
    assert upgrade_user_target(url_of(new), revisions, manner=Manner(found=True)) == []
    assert target_head_problem(url_of(new), revisions) is None
    new.execute("UPDATE alembic_version SET version_num = 'one'")
    ran = upgrade_user_target(url_of(new), revisions, manner=Manner(found=True))
    assert [one.name for one in ran] == ["two"]
    assert new.query("SELECT count(*) FROM second") == [(0,)]
