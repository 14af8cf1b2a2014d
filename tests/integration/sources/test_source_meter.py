"""The end of real servers' logs, asked for over one session that is made again when it was lost."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.meter import BinlogMeter
from migrator.adapters.sources.mariadb.catalog import log_end as maria_log_end
from migrator.adapters.sources.mysql.catalog import log_end as mysql_log_end
from migrator.adapters.sources.postgres.meter import PostgresMeter
from migrator.errors import ConnectionFailed
from migrator.ports.source import SourceMeter
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_reading import source_of as binlog_source
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration

KILL_PG = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%_meter'"
SESSIONS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%_meter'",
    "binlog": "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE()",
}


def follows(meter: SourceMeter, database: Database) -> None:
    """Its answers rise with what is committed."""
    database.execute("CREATE TABLE t (k int PRIMARY KEY)")
    before = meter.end()
    for key in range(3):
        database.execute(f"INSERT INTO t VALUES ({key})")
        after = meter.end()
        assert after > before
        before = after


def test_postgresql_is_asked_over_one_session(old_pg: Database) -> None:
    meter = PostgresMeter(postgres_source(old_pg))
    try:
        follows(meter, old_pg)
        assert old_pg.query(SESSIONS["postgresql"]) == [(1,)]
        old_pg.query(KILL_PG)
        with pytest.raises(ConnectionFailed, match="the source's log position can't be read"):
            meter.end()
        before = meter.end()
        old_pg.execute("INSERT INTO t VALUES (9)")
        assert meter.end() > before, "it is asked again"
    finally:
        meter.close()
        meter.close()
    with pytest.raises(ConnectionFailed):
        PostgresMeter(postgres_source(old_pg, port=1)).end()


def test_binlogs_are_asked_over_one_session(old_binlog: Database) -> None:
    asked = maria_log_end if old_binlog.kind == "mariadb" else mysql_log_end
    meter = BinlogMeter(binlog_source(old_binlog), asked)
    try:
        follows(meter, old_binlog)
        # A session that was closed just now is listed for a moment.
        await_true(lambda: old_binlog.query(SESSIONS["binlog"]) == [(2,)], "its own, and the one that looks")
        meter._connection._force_close()
        with pytest.raises(ConnectionFailed):
            meter.end()
        before = meter.end()
        old_binlog.execute("INSERT INTO t VALUES (9)")
        assert meter.end() > before, "it is asked again"
    finally:
        meter.close()
        meter.close()
    with pytest.raises(ConnectionFailed):
        BinlogMeter(binlog_source(old_binlog, port=1), asked).end()
