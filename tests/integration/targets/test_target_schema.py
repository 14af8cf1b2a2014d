"""Control tables and the user's revisions, on every engine that gets them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, pool

from migrator.errors import ConnectionFailed, SourceError, TargetError
from migrator.schema import (
    control_problem,
    target_head_problem,
    upgrade_fence,
    upgrade_source,
    upgrade_target,
    upgrade_user_target,
)
from tests.servers import Database

pytestmark = pytest.mark.integration

ENV = """
from alembic import context
context.configure(connection=context.config.attributes["connection"], target_metadata=None)
with context.begin_transaction():
    context.run_migrations()
"""
REVISION = """
from alembic import op
import sqlalchemy as sa
revision, down_revision = {number!r}, {before!r}
def upgrade():
    op.execute({statement!r})
def downgrade():
    pass
"""


def url_of(database: Database, username: str | None = None, password: str | None = None) -> URL:
    driver = "postgresql+psycopg" if database.kind == "postgresql" else "mysql+pymysql"
    return URL.create(
        driver,
        username=database.user if username is None else username,
        password=database.password if password is None else password,
        host=database.host,
        port=database.port,
        database=database.database,
    )


@pytest.fixture
def revisions(tmp_path: Path) -> Path:
    """A user's script location with two revisions; the path has a % in it."""
    folder = tmp_path / "ale%mbic"
    (folder / "versions").mkdir(parents=True)
    (folder / "env.py").write_text(ENV)
    for number, before, statement in (
        ("one", None, "CREATE TABLE first (id int PRIMARY KEY)"),
        ("two", "one", "CREATE TABLE second (id int PRIMARY KEY)"),
    ):
        text = REVISION.format(number=number, before=before, statement=statement)
        (folder / "versions" / f"{number}.py").write_text(text)
    return folder


def test_the_ledger_is_made_once(new_pg: Database) -> None:
    assert control_problem(url_of(new_pg)) is None
    for _ in range(2):
        upgrade_target(url_of(new_pg))
    columns = new_pg.query(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'migrator' AND table_name = 'ledger' ORDER BY ordinal_position"
    )
    assert columns == [
        ("migration", "text"),
        ("epoch", "bigint"),
        ("segment", "bigint"),
        ("position_order", "numeric"),
        ("position_token", "text"),
        ("checkpoint", "jsonb"),
        ("updated_at", "timestamp with time zone"),
        ("format", "integer"),
    ]
    assert new_pg.query("SELECT version_num FROM migrator.alembic_version") == [("target_0002",)]
    assert new_pg.query("SELECT to_regclass('public.alembic_version')") == [(None,)]


def test_many_at_once_make_the_ledger_once(new_pg: Database) -> None:
    barrier = threading.Barrier(4)

    def make(_: int) -> None:
        barrier.wait(30)
        upgrade_target(url_of(new_pg))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [None] * 4
    assert new_pg.query("SELECT count(*) FROM migrator.alembic_version") == [(1,)]


def test_control_tables_of_a_newer_version_are_refused_by_name(new_pg: Database) -> None:
    upgrade_target(url_of(new_pg))
    new_pg.execute("UPDATE migrator.alembic_version SET version_num = 'target_9999'")
    problem = control_problem(url_of(new_pg))
    assert problem is not None
    assert "target_9999" in problem.problem
    assert "a newer one" in problem.remedy
    with pytest.raises(TargetError, match="newer version of the migrator") as caught:
        upgrade_target(url_of(new_pg))
    assert "target_9999" in caught.value.cause


def test_source_and_target_may_share_a_database(new_pg: Database) -> None:
    engine = create_engine(url_of(new_pg), poolclass=pool.NullPool)
    upgrade_source(engine)
    upgrade_target(engine)
    upgrade_source(engine)
    identity = "SELECT relreplident::text FROM pg_class WHERE oid = 'migrator.watermark'::regclass"
    assert new_pg.query(identity) == [("f",)]
    versions = new_pg.query("SELECT version_num FROM migrator.alembic_version ORDER BY 1")
    assert versions == [("source_0001",), ("target_0002",)]


def test_the_notes_of_fences_are_made_alone_and_beside_all_others(
    new_pg: Database, new_maria: Database
) -> None:
    upgrade_fence(url_of(new_pg), "source")
    versions = "SELECT version_num FROM migrator.alembic_version ORDER BY 1"
    assert new_pg.query(versions) == [("fence_0001",)]
    assert new_pg.query("SELECT to_regclass('migrator.watermark')") == [(None,)]
    upgrade_target(url_of(new_pg))
    upgrade_fence(url_of(new_pg), "target")
    assert new_pg.query(versions) == [("fence_0001",), ("target_0002",)]
    target = url_of(new_maria)
    upgrade_fence(target, "target")
    upgrade_target(target)
    assert new_maria.query("SELECT version_num FROM migrator_version ORDER BY 1") == [
        ("fence_0001",),
        ("target_0002",),
    ]
    assert new_maria.query("SELECT COUNT(*) FROM migrator_fence") == [(0,)]


def test_the_watermark_table_on_mariadb(old_maria: Database) -> None:
    try:
        for _ in range(2):
            upgrade_source(url_of(old_maria))
        columns = old_maria.query(
            "SELECT column_name, column_key FROM information_schema.columns"
            " WHERE table_schema = 'migrator' AND table_name = 'watermark' ORDER BY ordinal_position"
        )
        assert columns == [("migration", "PRI"), ("token", ""), ("kind", "")]
    finally:
        old_maria.execute("DROP DATABASE IF EXISTS migrator")


def test_a_schema_made_by_the_owner_is_enough(new_pg: Database) -> None:
    role = f"least_{new_pg.database}"
    new_pg.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    url = url_of(new_pg, username=role, password="secret")
    try:
        missing = control_problem(url)
        assert missing is not None
        assert "may not create it" in missing.problem
        with pytest.raises(TargetError, match=f'CREATE SCHEMA migrator AUTHORIZATION "{role}"') as raised:
            upgrade_target(url)
        assert "secret" not in str(raised.value)
        assert missing.remedy == raised.value.remedy
        with pytest.raises(SourceError, match=r"migrator\.watermark"):
            upgrade_source(url)
        new_pg.execute("CREATE SCHEMA migrator")
        for right in ("USAGE", "CREATE"):  # either alone isn't enough
            new_pg.execute(f"GRANT {right} ON SCHEMA migrator TO {role}")
            there = control_problem(url)
            assert there is not None
            assert "may not create tables" in there.problem
            new_pg.execute(f"REVOKE ALL ON SCHEMA migrator FROM {role}")
        with pytest.raises(TargetError) as refused:
            upgrade_target(url)
        assert there is not None
        assert refused.value.remedy == there.remedy
        new_pg.execute(there.remedy.partition(": ")[2])
        assert control_problem(url) is None
        upgrade_target(url)
        upgrade_target(url)
    finally:
        new_pg.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_users_revisions_must_be_at_head(new_pg: Database, revisions: Path) -> None:
    url = url_of(new_pg)
    problem = target_head_problem(url, revisions, "public")
    assert problem is not None
    assert "revision none" in problem
    assert "two" in problem
    assert "migrator schema upgrade" in problem
    upgrade_user_target(url, revisions, "one")
    assert "revision one, the head" in (target_head_problem(url, revisions) or "")
    upgrade_user_target(url, revisions)
    assert target_head_problem(url, revisions) is None
    assert target_head_problem(url, revisions, "public") is None
    assert target_head_problem(url, revisions, "elsewhere") is None  # kept in the default schema
    assert new_pg.query("SELECT to_regclass('public.second')::text") == [("second",)]


def test_revisions_that_fail_are_named(new_pg: Database, revisions: Path) -> None:
    new_pg.execute("CREATE TABLE second (id int)")
    with pytest.raises(TargetError, match="already exists"):
        upgrade_user_target(url_of(new_pg), revisions)
    with pytest.raises(TargetError, match="can't be read"):
        target_head_problem(url_of(new_pg), revisions / "nowhere")


def test_an_unreachable_database_is_named_without_the_password(new_pg: Database) -> None:
    wrong = url_of(new_pg, username="nobody_here", password="s3cret")
    with pytest.raises(ConnectionFailed) as raised:
        upgrade_target(wrong)
    assert "nobody_here" in str(raised.value)
    assert "s3cret" not in str(raised.value)
    assert raised.value.what == "the database refuses the login"
    assert not raised.value.retryable


def test_a_server_that_is_down_may_come_back(new_pg: Database) -> None:
    """Port 1 is nobody's: a run goes on trying, and must not blame the login."""
    with pytest.raises(ConnectionFailed) as raised:
        upgrade_target(url_of(new_pg).set(port=1))
    assert raised.value.what == "the database can't be reached"
    assert raised.value.retryable
