"""HAProxy's hook, as it stands in the documents, under an application of many pooled connections and prepared
statements."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.embedded.process import scratch_directory
from migrator.embedded.proxies import HAPROXY, SOCAT, EmbeddedHAProxy
from tests.integration.cutover.clients import APPLICATION, as_application
from tests.integration.cutover.hooked import (
    REFUSED,
    begun_with,
    called,
    hook_of,
    port_behind,
    there_and_back,
    unpacked,
)
from tests.servers import Database, PostgresServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ENDED = (
    "server closed the connection",
    "connection is closed",
    "terminating connection",
    "Connection refused",
)
"""What clients see whose session was ended, or who came while no side was there."""


@pytest.fixture
def new_pg(postgres_target: PostgresServer, old_pg: Database) -> Iterator[Database]:
    """A database of the old one's name: HAProxy passes on what clients ask for."""
    database = postgres_target.create(old_pg.database)
    try:
        yield database
    finally:
        postgres_target.drop(database)


@pytest.mark.spark
def test_a_cut_over_through_haproxy_loses_nothing_and_outlives_its_restart(
    old_pg: Database,
    new_pg: Database,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    unpacked(HAPROXY)
    for database in (old_pg, new_pg):
        as_application(database)
    path = os.environ["PATH"]
    if shutil.which("socat") is None:
        unpacked(SOCAT)
        path = f"{(SOCAT.startable(SOCAT.program) / SOCAT.program).parent}:{path}"
    sides = (old_pg.host, old_pg.port), (new_pg.host, new_pg.port)
    with (
        scratch_directory("migrator-hooks-") as folder,
        EmbeddedHAProxy(folder / "haproxy", sides) as proxy,
    ):
        settings = {
            "PATH": path,
            "HAPROXY_SOCKET": f"UNIX-CONNECT:{proxy.socket}",
            "HAPROXY_WRITES": proxy.backend,
            "HAPROXY_STATE": str(proxy.state),
        }
        conninfo = f"host={proxy.host} port={proxy.port} user={APPLICATION} dbname={old_pg.database}"
        for side, database in (("new", new_pg), ("new", new_pg), ("old", old_pg)):
            assert called("haproxy.sh", settings, side, database, "k").startswith("0")
            assert port_behind(conninfo) == database.port
        assert called("haproxy.sh", {**settings, "HAPROXY_WRITES": "nobody"}, "new", new_pg, "k").startswith(
            "1"
        )
        project = begun_with(hook_of("haproxy.sh", settings), request, tmp_path)
        there_and_back(project, conninfo, (REFUSED, *ENDED))
        assert called("haproxy.sh", settings, "new", new_pg, "k").startswith("0")
        proxy.restart()
        assert port_behind(conninfo) == new_pg.port
