"""Fixtures of the tests that run once on MySQL and once on MariaDB.

A module with tests of one engine only has an ``engine`` fixture of its own, which the others then follow.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import source_of
from tests.servers import (
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    fresh_database,
    mysql_server,
)


@pytest.fixture(scope="module", params=[MYSQL, MARIADB], ids=lambda engine: engine.kind)
def engine(request: pytest.FixtureRequest) -> BinlogEngine:
    """Each engine in turn."""
    found: BinlogEngine = request.param
    return found


@pytest.fixture
def old_binlog(request: pytest.FixtureRequest, engine: BinlogEngine) -> Iterator[Database]:
    """An empty source database on the engine's server, which the run shares."""
    with fresh_database(request.getfixturevalue(engine.kind), "old") as database:
        yield database


@pytest.fixture(scope="session")
def spare_mysql(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """A MySQL server whose global settings may be changed, whose log may be purged, and which may be killed."""
    return mysql_server(servers, "spare_mysql")


@pytest.fixture(scope="session")
def spare_mariadb(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """The same of MariaDB."""
    return servers.mariadb("spare_mariadb")


@pytest.fixture
def spare_server(request: pytest.FixtureRequest, engine: BinlogEngine) -> MariaDBServer:
    """A server that a test may disturb, and leaves as it found it."""
    found: MariaDBServer = request.getfixturevalue(f"spare_{engine.kind}")
    return found


@pytest.fixture
def spare_database(spare_server: MariaDBServer) -> Iterator[Database]:
    """An empty source database on ``spare_server``."""
    with fresh_database(spare_server, "old") as database:
        yield database


@pytest.fixture
def one_row(spare_database: Database) -> Database:
    """``spare_database`` with a table ``t`` of one row, (5, 'old')."""
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (5, 'old')"
    )
    return spare_database


@pytest.fixture
def accounts(old_binlog: Database) -> Database:
    """A source database with a table ``account`` to be captured, and one beside it."""
    old_binlog.execute(
        "CREATE TABLE account (id int PRIMARY KEY, name varchar(40), balance decimal(12,2))",
        "CREATE TABLE other (id int PRIMARY KEY)",
    )
    return old_binlog


@pytest.fixture
def reader(engine: BinlogEngine, accounts: Database) -> Iterator[BinlogReader]:
    """A log reader of ``account`` that stands at the end of the log."""
    log_reader, _ = engine.started(source_of(accounts), "account")
    yield log_reader
    log_reader.close()
