"""PgBouncer's hook, as it stands in the documents, under an application of many pooled connections and prepared
statements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from migrator.embedded.postgres import postgres_installation
from migrator.embedded.process import scratch_directory
from migrator.embedded.proxies import PGBOUNCER, EmbeddedPgBouncer
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
from tests.integration.cutover.pooled import CONNECTIONS
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that proxies may enter, which don't run as root."""
    with scratch_directory("migrator-hooks-") as made_folder:
        yield made_folder


def words(database: Database) -> str:
    """An entry of PgBouncer."""
    return f"host={database.host} port={database.port} dbname={database.database} user={APPLICATION}"


def pgbouncer_hook(bouncer: EmbeddedPgBouncer, **more: str) -> dict[str, str]:
    """The script's settings."""
    psql = postgres_installation() / "bin"
    return {
        "PATH": f"{psql}:{os.environ['PATH']}",
        "PGBOUNCER_CONSOLE": bouncer.console,
        "PGBOUNCER_ENTRIES": str(bouncer.entries),
        "PGBOUNCER_WRITES": "shop",
        "PGBOUNCER_READS": "shop_reads",
        "PGBOUNCER_MORE": f"user={APPLICATION}",
        **more,
    }


@pytest.fixture
def bouncer(folder: Path, old_pg: Database) -> Iterator[EmbeddedPgBouncer]:
    """A PgBouncer before the old side."""
    unpacked(PGBOUNCER)
    as_application(old_pg)
    with EmbeddedPgBouncer(
        folder / "bouncer", dict.fromkeys(("shop", "shop_reads"), words(old_pg))
    ) as started:
        yield started


def shop(bouncer: EmbeddedPgBouncer, name: str = "shop") -> str:
    """Connection string of the pooled application."""
    return f"host={bouncer.host} port={bouncer.port} user={APPLICATION} dbname={name}"


def test_pgbouncers_hook_may_be_called_again_and_knows_reads_from_writes(
    bouncer: EmbeddedPgBouncer, old_pg: Database, new_pg: Database
) -> None:
    as_application(new_pg)
    settings = pgbouncer_hook(bouncer)
    assert called("pgbouncer.sh", settings, "new", new_pg, "k1", "reads").startswith("0")
    assert (port_behind(shop(bouncer)), port_behind(shop(bouncer, "shop_reads"))) == (
        old_pg.port,
        new_pg.port,
    )
    for _ in range(2):
        assert called("pgbouncer.sh", settings, "new", new_pg, "k2").startswith("0")
        assert port_behind(shop(bouncer)) == new_pg.port
    assert called("pgbouncer.sh", settings, "old", old_pg, "k3").startswith("0")
    assert port_behind(shop(bouncer)) == old_pg.port


def test_pgbouncers_hook_left_in_the_middle_is_made_good_by_the_next_call(
    bouncer: EmbeddedPgBouncer, old_pg: Database, new_pg: Database
) -> None:
    """Killed behind its PAUSE, and behind the file."""
    as_application(new_pg)
    settings = pgbouncer_hook(bouncer)
    with psycopg.connect(bouncer.console, autocommit=True) as console:
        console.pgconn.exec_(b"PAUSE shop")
    assert called("pgbouncer.sh", settings, "new", new_pg, "k1").startswith("0")
    assert port_behind(shop(bouncer)) == new_pg.port
    file = bouncer.entries / "shop.ini"
    after = file.read_text()
    assert called("pgbouncer.sh", settings, "old", old_pg, "k2").startswith("0")
    with psycopg.connect(bouncer.console, autocommit=True) as console:
        console.pgconn.exec_(b"PAUSE shop")
    file.write_text(after)
    assert called("pgbouncer.sh", settings, "new", new_pg, "k1").startswith("0")
    assert port_behind(shop(bouncer)) == new_pg.port


def test_pgbouncers_hook_fails_in_time_and_clients_go_on(
    bouncer: EmbeddedPgBouncer, old_pg: Database, new_pg: Database
) -> None:
    settings = pgbouncer_hook(bouncer, PGBOUNCER_PAUSE_S="2")
    with psycopg.connect(shop(bouncer), prepare_threshold=0) as held:
        held.execute("SELECT 1")  # a transaction is open
        said = called("pgbouncer.sh", settings, "new", new_pg, "k1")
        assert said.startswith("1")
        assert "didn't end within 2 s" in said
        assert port_behind(shop(bouncer)) == old_pg.port, "nobody is paused"
    unknown = {**settings, "PGBOUNCER_WRITES": "nobody"}
    assert called("pgbouncer.sh", unknown, "new", new_pg, "k2").startswith("1")


@pytest.mark.spark
def test_a_cut_over_through_pgbouncer_loses_nothing_and_ends_no_session(
    bouncer: EmbeddedPgBouncer, new_pg: Database, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    as_application(new_pg)
    project = begun_with(hook_of("pgbouncer.sh", pgbouncer_hook(bouncer)), request, tmp_path)
    application = there_and_back(project, shop(bouncer), (REFUSED,))
    assert len(application.acknowledged) >= CONNECTIONS
