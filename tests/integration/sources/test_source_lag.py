"""How far replicas are behind, as a dump is throttled by it: a standby of PostgreSQL, a binlog replica."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from migrator.adapters.sources.binlog.load import BinlogLoadMeter
from migrator.adapters.sources.postgres.load import PostgresLoadMeter
from migrator.core.pace import Pacer
from migrator.embedded.binlog_server import BinlogServer
from migrator.embedded.process import scratch_directory
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import Pace
from migrator.ports.source import LoadMeter
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import source_of as binlog_source
from tests.integration.sources.binlog.place.test_binlog_promotion import await_same, database_of, pair
from tests.integration.sources.test_source_load import wait_for
from tests.servers import Database, embedded_postgres

pytestmark = pytest.mark.integration
__all__ = ["pair"]

LIMITS = CaptureLimits(dump_workers=4, max_replica_lag_s=0.5, dump_share=1.0)


def expect_throttled(meter: LoadMeter) -> None:
    """The sample of a lagging server takes all workers but one and makes the reads rest."""
    pacer = Pacer(LIMITS, Pace())
    behind = wait_for(meter, lambda load: (load.replica_lag_s or 0) > 0.5)
    assert "replica lag in s" in pacer.sampled(behind)
    assert (pacer.workers, pacer.rest_s > 0) == (1, True)
    assert Pacer(LIMITS, Pace(replica_lag_s=1e6)).sampled(behind) == "", "the bound decides, not the lag"


def expect_free(meter: LoadMeter) -> None:
    caught_up = wait_for(meter, lambda load: load.replica_lag_s is not None and load.replica_lag_s < 0.5)
    pacer = Pacer(LIMITS, Pace())
    assert pacer.sampled(caught_up) == ""
    assert (pacer.workers, pacer.rest_s) == (4, 0.0)


@pytest.fixture
def followed() -> Iterator[tuple[Database, Database]]:
    """A primary and a standby that follows it."""
    with (
        scratch_directory("migrator-lag-") as directory,
        embedded_postgres(directory / "primary") as primary,
        embedded_postgres(directory / "standby", standby_of=primary) as standby,
    ):
        yield tuple(  # type: ignore[misc]
            Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")
            for server in (primary, standby)
        )


def test_a_standby_that_stops_replaying_throttles(followed: tuple[Database, Database]) -> None:
    primary, standby = followed
    meter = PostgresLoadMeter(postgres_source(primary))
    primary.execute("CREATE TABLE t (k int)", "INSERT INTO t VALUES (1)")
    expect_free(meter)
    standby.execute("SELECT pg_wal_replay_pause()")
    deadline = time.monotonic() + 30
    while (meter.sample().replica_lag_s or 0) <= 0.5:  # the lag is measured by what is written meanwhile
        assert time.monotonic() < deadline
        primary.execute("INSERT INTO t VALUES (2)")
        threading.Event().wait(0.05)
    expect_throttled(meter)
    standby.execute("SELECT pg_wal_replay_resume()")
    expect_free(meter)
    meter.close()


@pytest.mark.slow
def test_a_source_that_is_a_replica_and_lags_throttles(
    engine: BinlogEngine, pair: tuple[BinlogServer, BinlogServer]
) -> None:
    """A session on the replica holds the table that the next change is for."""
    primary, replica = pair
    old, behind = database_of(primary), database_of(replica)
    old.execute("CREATE TABLE t (id int PRIMARY KEY)")
    await_same(primary, replica)
    meter = BinlogLoadMeter(binlog_source(behind))
    expect_free(meter)
    with behind.connect() as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES t READ")
        old.execute("INSERT INTO t VALUES (1)")
        expect_throttled(meter)
        cursor.execute("UNLOCK TABLES")
    await_same(primary, replica)
    expect_free(meter)
    meter.close()
