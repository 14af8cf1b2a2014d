"""Worlds for tests of faults: servers that may be killed, proxies before them, and a stand-in for the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scenarios.proxy.proxy import TcpProxy
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import StandInPipeline, make_world
from tests.servers import (
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    PostgresServer,
    fresh_database,
)


@pytest.fixture(scope="session")
def own_postgres(servers: EmbeddedServers | DockerServers) -> PostgresServer:
    """These tests kill their servers."""
    return servers.postgres("faults_postgres")


@pytest.fixture(scope="session")
def own_mariadb(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    return servers.mariadb("faults_mariadb")


@pytest.fixture(params=["postgresql", "mariadb"])
def own_server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue({"postgresql": "own_postgres", "mariadb": "own_mariadb"}[request.param])


@pytest.fixture
def database(own_server: Any) -> Iterator[Database]:
    with fresh_database(own_server, "faults") as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))")
        yield fresh


@pytest.fixture
def proxy(database: Database) -> Iterator[TcpProxy]:
    with TcpProxy(database.host, database.port, kind=database.kind) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, database: Database, own_server: Any, proxy: TcpProxy) -> World:
    if own_server.embedded is None:
        pytest.skip("the server runs in a container, which these tests can't kill")
    return make_world(tmp_path, database, own_server.embedded, proxy)[0]


@pytest.fixture
def pg_world(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[tuple[World, StandInPipeline]]:
    """A PostgreSQL world with a running stand-in for the pipeline."""
    assert own_postgres.embedded is not None
    with fresh_database(own_postgres, "faults") as fresh:
        world, pipeline = make_world(tmp_path, fresh, own_postgres.embedded)
        try:
            yield world, pipeline
        finally:
            pipeline.kill()
