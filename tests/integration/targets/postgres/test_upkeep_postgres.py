"""A PostgreSQL target that is made to look at tables: what it knows then, who may, and that nobody waits for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.adapters.targets.postgres.upkeep import PostgresUpkeep
from migrator.config import project as configuration
from migrator.model.table import TableId
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.target_bench import MIGRATION, settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

THING = TableId("public", "thing")
FEW = 40
"""Rows that no autovacuum of the test's server looks at by itself."""
_KNOWN = """
SELECT reltuples, relallvisible > 0, EXISTS (SELECT FROM pg_stats WHERE tablename = relname)
FROM pg_class WHERE oid = %s::regclass
"""


@pytest.fixture
def filled(new_pg: Database) -> Database:
    """A table that only we look at."""
    new_pg.execute(
        "CREATE TABLE thing (id int PRIMARY KEY) WITH (autovacuum_enabled = off)",
        "INSERT INTO thing SELECT generate_series(1, 5000)",
    )
    return new_pg


@pytest.fixture
def stranger(filled: Database) -> Iterator[str]:
    """A role that may write the table and doesn't own it."""
    role = f"stranger_{uuid.uuid4().hex[:8]}"
    filled.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor'", f"GRANT SELECT, INSERT ON thing TO {role}")
    yield role
    filled.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def known(database: Database, table: str = "thing") -> tuple[int, bool, bool]:
    """Rows as the planner believes (-1: it doesn't), whether pages are known to be visible, statistics of
    columns."""
    ((rows, visible, statistics),) = database.query(_KNOWN, (table,))
    return int(rows), bool(visible), bool(statistics)


def test_what_was_filled_is_known_although_others_write_it(filled: Database) -> None:
    upkeep = PostgresUpkeep(settings_of(filled))
    assert known(filled) == (-1, False, False)
    assert upkeep.lacking(THING)
    with filled.connect(autocommit=False) as writer:
        writer.execute("INSERT INTO thing VALUES (5001)")
        assert upkeep.refresh(THING, lambda: False) == ""
        writer.execute("UPDATE thing SET id = 5002 WHERE id = 5001")
    assert known(filled) == (5000, True, True)
    assert not upkeep.lacking(THING)


def test_who_does_not_own_it_is_told_what_is_missing_where_it_can_be_given(
    filled: Database, stranger: str
) -> None:
    upkeep = PostgresUpkeep(settings_of(filled, user=stranger, password="poor"))
    why = upkeep.refresh(THING, lambda: False)
    assert upkeep.lacking(THING)
    if int(filled.query("SHOW server_version_num")[0][0]) < 170000:
        assert why == "", "nobody can follow it: only owners may"
        return
    assert 'GRANT MAINTAIN ON "public"."thing"' in why
    filled.execute(f"GRANT MAINTAIN ON thing TO {stranger}")
    assert upkeep.refresh(THING, lambda: False) == ""
    assert not upkeep.lacking(THING)


@pytest.mark.slow
@pytest.mark.parametrize(("stopped", "lock_wait_s"), [(True, 30), (False, 1)])
def test_it_ends_when_the_run_does_and_waits_for_no_lock_for_ever(
    filled: Database, stopped: bool, lock_wait_s: int
) -> None:
    upkeep = PostgresUpkeep(settings_of(filled, lock_wait_s=lock_wait_s))
    with filled.connect(autocommit=False) as other:
        other.execute("LOCK TABLE thing IN SHARE UPDATE EXCLUSIVE MODE")
        assert "run VACUUM (ANALYZE)" in upkeep.refresh(THING, lambda: stopped)
    assert upkeep.lacking(THING)


def test_the_mirror_s_tables_are_found_and_no_others(filled: Database) -> None:
    filled.execute(
        "CREATE SCHEMA migrator_mirror",
        f'CREATE TABLE migrator_mirror."{MIGRATION}.thing" (id int)',
        'CREATE TABLE migrator_mirror."of another.thing" (id int)',
        "CREATE TABLE migrator_mirror.filled (id int)",
    )
    found = PostgresUpkeep(settings_of(filled)).mirror()
    assert found == [TableId("migrator_mirror", f"{MIGRATION}.thing")]


@pytest.mark.spark
@pytest.mark.parametrize("wanted", [True, False])
def test_a_run_has_the_target_look_at_what_its_dump_has_filled(
    wanted: bool, tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    create(scenario_database(old_pg), FEW)
    project: Project = run_project.make(tmp_path / "project", old_pg, new_pg)
    if not wanted:
        project.config.write_text(project.config.read_text() + "[apply]\nupkeep = false\n")
    parts = wiring.parts(configuration.load(project.config))
    there = caught_up(parts.catalog.position)
    migration = Migration(parts)
    migration.run(Stopping(), lambda now: there(now) and now.kept_up)
    assert project.differences() == []
    assert known(new_pg, "purchase") == ((FEW, True, True) if wanted else (-1, False, False))
    assert migration.progress.snapshot().warnings == ()
