"""What the source's servers tell of their load: active sessions without ours, and replicas, if any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from migrator.adapters.sources.binlog.load import BinlogLoadMeter
from migrator.adapters.sources.postgres.connection import connect as postgres_connection
from migrator.adapters.sources.postgres.load import PostgresLoadMeter
from migrator.connections.mysql.settings import BinlogSource
from migrator.core.pace import Pacer
from migrator.core.throttle import QUIET_SAMPLES
from migrator.errors import ConnectionFailed
from migrator.model.limits import CaptureLimits
from migrator.model.load import Load
from migrator.model.requests.request import Pace
from migrator.ports.source import LoadMeter
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_reading import source_of as binlog_source
from tests.servers import Database

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0


@contextmanager
def busy(database: Database, connection: Any, lock: int = 7) -> Iterator[None]:
    """A session with a statement that runs until it is let go: it waits for a lock that another session has."""
    postgres = database.kind == "postgresql"
    wait = f"SELECT pg_advisory_lock({lock})" if postgres else f"SELECT GET_LOCK('busy {lock}', 600)"

    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(wait)

    holder = database.connect()
    with holder.cursor() as cursor:
        cursor.execute(wait)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        holder.close()
        thread.join(DEADLINE_S)
        connection.close()


def wait_for(meter: LoadMeter, holds: Callable[[Load], bool]) -> Load:
    deadline = time.monotonic() + DEADLINE_S
    while not holds(load := meter.sample()):
        assert time.monotonic() < deadline, load
    return load


def test_postgresql_counts_what_others_do(old_pg: Database) -> None:
    source = postgres_source(old_pg)
    meter = PostgresLoadMeter(source)
    try:
        with busy(old_pg, old_pg.connect(application_name="shop")):
            seen = wait_for(meter, lambda load: (load.active_sessions or 0) > 0)
            assert seen.replica_lag_s is None, "it has no standby"
    finally:
        meter.close()


def test_postgresql_tells_of_statements_of_a_moment_ago(old_pg: Database) -> None:
    source = postgres_source(old_pg)
    meter = PostgresLoadMeter(source)
    shop, ours = old_pg.connect(application_name="shop"), postgres_connection(source, "chunks")
    try:
        wait_for(meter, lambda load: not load.lately)
        deadline = time.monotonic() + DEADLINE_S
        while (load := _sampled_after(shop, meter)) != Load(0, None, lately=True):
            assert time.monotonic() < deadline, load
        wait_for(meter, lambda load: load == Load(0, None))
        assert not _sampled_after(ours, meter).lately, "our own don't count"
    finally:
        for connection in (meter, shop, ours):
            connection.close()


def _sampled_after(connection: Any, meter: LoadMeter) -> Load:
    connection.execute("SELECT 1")
    return meter.sample()


def test_postgresql_leaves_our_own_sessions_out_and_says_what_it_cannot_see(old_pg: Database) -> None:
    source = postgres_source(old_pg)
    meter = PostgresLoadMeter(source)

    def ours() -> int:
        sql = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
            " AND (application_name LIKE %s OR application_name LIKE %s)"
        )
        return int(old_pg.query(sql, [f"{source.slot}%", f"migrator {source.migration} %"])[0][0])

    def others(load: Load) -> bool:
        sql = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"
        )
        return load.active_sessions == int(old_pg.query(sql)[0][0]) - 1 - ours()

    try:
        for connection in (
            postgres_connection(source, "chunks"),
            old_pg.connect(application_name=f"migrator {source.migration} target"),
        ):
            with busy(old_pg, connection):
                deadline = time.monotonic() + DEADLINE_S
                while ours() == 0:
                    assert time.monotonic() < deadline
                wait_for(meter, others)
    finally:
        meter.close()
    role = f"poor_{old_pg.database}"
    old_pg.execute(f"CREATE ROLE {role} LOGIN")
    try:
        poor = PostgresLoadMeter(postgres_source(old_pg, user=role, password=None))
        assert poor.sample() == Load()
        poor.close()
    finally:
        old_pg.execute(f"DROP ROLE {role}")


@pytest.fixture(params=["old_maria", "old_mysql"])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    return database


def source_of(database: Database, **changes: object) -> BinlogSource:
    return binlog_source(database, tls="prefer" if database.kind == "mysql" else "disable", **changes)


def test_a_binlog_server_counts_the_threads_of_others(old: Database) -> None:
    user = f"u{old.database[-8:]}"
    old.execute(f"CREATE USER {user}@'%' IDENTIFIED BY 'p'", f"GRANT SELECT ON *.* TO {user}@'%'")
    meter = BinlogLoadMeter(source_of(old))
    try:
        with busy(old, old.connect(user=user, password="p")):
            wait_for(meter, lambda load: (load.active_sessions or 0) > 0)
        with busy(old, old.connect()):
            poor = BinlogLoadMeter(source_of(old, user=user, password="p"))
            assert wait_for(poor, lambda load: (load.active_sessions or 0) > 0).replica_lag_s is None
            poor.close()
    finally:
        meter.close()
        old.execute(f"DROP USER {user}@'%'")


def test_a_dump_gives_way_to_sessions_that_go_on_working(old: Database) -> None:
    """Seen once, they may have been ours; four, since one of ours that begins or ends hides one of them."""
    user = f"u{old.database[-8:]}"
    old.execute(f"CREATE USER {user}@'%' IDENTIFIED BY 'p'", f"GRANT ALL ON `{old.database}`.* TO {user}@'%'")
    meter, pacer = BinlogLoadMeter(source_of(old)), Pacer(CaptureLimits(dump_workers=4), Pace())
    try:
        with ExitStack() as stack:
            for lock in range(4):
                stack.enter_context(busy(old, old.connect(user=user, password="p"), lock))
            assert pacer.workers == 1, "nothing is known yet"
            pacer.sampled(wait_for(meter, lambda load: (load.active_sessions or 0) > 2))
            pacer.sampled(meter.sample())
            for _ in range(QUIET_SAMPLES - 1):
                pacer.sampled(Load(0, None))
            assert pacer.workers == 1, "fewer would do, had nobody been seen for sure"
            pacer.sampled(meter.sample())
        for _ in range(QUIET_SAMPLES):
            pacer.sampled(wait_for(meter, lambda load: load.active_sessions == 0))
        assert pacer.workers == 4
    finally:
        meter.close()
        old.execute(f"DROP USER {user}@'%'")


def test_nobody_is_seen_where_only_we_work_and_the_event_scheduler_waits(old: Database) -> None:
    ((scheduler,),) = old.query("SELECT @@GLOBAL.event_scheduler")
    old.execute("SET GLOBAL event_scheduler = ON")
    ended = threading.Event()

    def read_chunks() -> None:
        with old.connect() as connection, connection.cursor() as cursor:
            while not ended.is_set():
                cursor.execute("SELECT count(*) FROM information_schema.columns")
                cursor.fetchall()

    ours = [threading.Thread(target=read_chunks) for _ in range(3)]
    meter = BinlogLoadMeter(source_of(old))
    try:
        wait_for(meter, lambda load: load.active_sessions == 0)
        for thread in ours:
            thread.start()
        seen = [meter.sample().active_sessions for _ in range(100)]
        assert seen.count(0) >= 95, seen
    finally:
        ended.set()
        for thread in ours:
            thread.join(DEADLINE_S)
        meter.close()
        old.execute(f"SET GLOBAL event_scheduler = {scheduler}")


def test_a_server_that_is_gone_is_a_failed_connection(old: Database) -> None:
    meter = BinlogLoadMeter(source_of(old, port=1))
    with pytest.raises(ConnectionFailed):
        meter.sample()
    meter.close()
