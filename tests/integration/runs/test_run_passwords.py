"""Servers that want a password: the right one comes from the environment, a wrong one is one clear message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database, embedded_postgres

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PASSWORD = "s3cret 'word\\"


@pytest.fixture(scope="module")
def locked_server() -> Iterator[Database]:
    """A PostgreSQL that wants a password of everybody."""
    with (
        scratch_directory("migrator-password-test-") as folder,
        embedded_postgres(folder / "pg", auth="scram-sha-256", password=PASSWORD) as server,
    ):
        server.create_database("locked")
        yield Database(server.host, server.port, "locked", server.superuser, PASSWORD, "postgresql")


@pytest.fixture
def locked_maria(old_maria: Database) -> Iterator[Database]:
    """The same MariaDB database through a user with a password."""
    user = f"locked_{old_maria.database[-12:]}"
    quoted = PASSWORD.replace("\\", "\\\\").replace("'", "''")
    old_maria.execute(
        f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY '{quoted}'",
        f"GRANT ALL ON *.* TO {user}@'127.0.0.1'",
    )
    yield Database(old_maria.host, old_maria.port, old_maria.database, user, PASSWORD, "mariadb")
    old_maria.execute(f"DROP USER {user}@'127.0.0.1'")


@pytest.fixture(params=["postgresql", "mariadb"])
def project(
    request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """Migrates from a server with a password, which the environment holds."""
    old: Database = request.getfixturevalue(
        "locked_server" if request.param == "postgresql" else "locked_maria"
    )
    if request.param == "postgresql":
        old.execute("DROP TABLE IF EXISTS orders")
    create(scenario_database(old), 200)
    monkeypatch.setenv("OLD_PASSWORD", PASSWORD)
    made = run_project.make(tmp_path / "project", old, new_pg)
    text = made.config.read_text()
    made.config.write_text(text.replace("\n\n[target]", '\npassword_env = "OLD_PASSWORD"\n\n[target]'))
    return made


@pytest.mark.slow
def test_a_wrong_password_is_named_and_the_right_one_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.setenv("OLD_PASSWORD", "gue55ed")
    with pytest.raises(ConnectionFailed) as caught:
        project.run_here()
    text = "\n".join(caught.value.lines())
    assert project.old.user in text
    assert "password" in text
    assert "remedy" in text
    assert "gue55ed" not in text
    monkeypatch.setenv("OLD_PASSWORD", PASSWORD)
    project.run_here()
    assert project.differences() == []
