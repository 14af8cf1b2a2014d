"""Fixtures for real servers and fresh databases, shared by all tests. See tests/servers.py."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from migrator.embedded.mariadb import find_mariadb, mariadb_programs
from migrator.embedded.mysql import mysql_packages
from migrator.embedded.postgres import postgres_installation
from tests.each_value import mark_the_others
from tests.fix_cluster import cluster  # noqa: F401
from tests.fix_hostile_postgres import hostile, hostile_server  # noqa: F401
from tests.fix_spark import adaptive, interpreted, spark  # noqa: F401  (they import PySpark only when used)
from tests.fix_zookeeper import contenders, ensemble_settings, zookeeper  # noqa: F401
from tests.servers import (
    MARIADB_VERSION,
    MYSQL_VERSION,
    POSTGRES_VERSION,
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    PostgresServer,
    fresh_database,
    mysql_server,
    provider,
)

# A busy machine makes any example slow; what is measured is in `migrator bench`.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what ``make test`` leaves out of the products of parameters."""
    mark_the_others(items)


def pytest_report_header() -> str:
    """Which servers the tests will meet; a failure report without it is hard to read."""
    choice = os.environ.get("MIGRATOR_TEST_SERVERS", "embedded")
    if choice != "embedded":
        return f"servers: {choice}; PostgreSQL {POSTGRES_VERSION}"
    programs = [postgres_installation(POSTGRES_VERSION) / "bin" / "postgres"]
    found = find_mariadb() if MARIADB_VERSION is None else mariadb_programs(MARIADB_VERSION)
    if found is not None:
        programs.append(found[0])
    versions = [
        subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        for program in programs
    ]
    if found is None:
        versions.append("MariaDB: to be installed by the first test that needs it")
    packages = mysql_packages(MYSQL_VERSION)
    kept = packages.cache_folder()
    unpacked = (kept / "root" / packages.program).exists()
    versions.append(f"MySQL: {kept if unpacked else 'to be unpacked by the first test that needs it'}")
    return "servers: embedded; " + "; ".join(versions)


@pytest.fixture(scope="session")
def servers() -> Iterator[EmbeddedServers | DockerServers]:
    """Starts servers; everything it started stops at the end of the session."""
    with provider() as started:
        yield started


@pytest.fixture(scope="session")
def postgres(servers: EmbeddedServers | DockerServers) -> PostgresServer:
    """The source PostgreSQL server."""
    return servers.postgres("postgres")


@pytest.fixture(scope="session")
def postgres_target(servers: EmbeddedServers | DockerServers) -> PostgresServer:
    """A second PostgreSQL cluster, for targets."""
    return servers.postgres("postgres_target")


@pytest.fixture(scope="session")
def mariadb(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """The source MariaDB server."""
    return servers.mariadb("mariadb")


@pytest.fixture(scope="session")
def mysql(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """The source MySQL server."""
    return mysql_server(servers, "mysql")


@pytest.fixture
def old_pg(postgres: PostgresServer) -> Iterator[Database]:
    """An empty source database on PostgreSQL."""
    with fresh_database(postgres, "old") as database:
        yield database


@pytest.fixture
def new_pg(postgres_target: PostgresServer) -> Iterator[Database]:
    """An empty target database on PostgreSQL."""
    with fresh_database(postgres_target, "new") as database:
        yield database


@pytest.fixture
def old_maria(mariadb: MariaDBServer) -> Iterator[Database]:
    """An empty source database on MariaDB."""
    with fresh_database(mariadb, "old") as database:
        yield database


@pytest.fixture
def old_mysql(mysql: MariaDBServer) -> Iterator[Database]:
    """An empty source database on MySQL."""
    with fresh_database(mysql, "old") as database:
        yield database


@pytest.fixture
def new_maria(mariadb: MariaDBServer) -> Iterator[Database]:
    """An empty target database on MariaDB."""
    with fresh_database(mariadb, "new") as database:
        yield database


@pytest.fixture
def new_mysql(mysql: MariaDBServer) -> Iterator[Database]:
    """An empty target database on MySQL."""
    with fresh_database(mysql, "new") as database:
        yield database
