"""Semi-synchronous replication without a replica: commits that wait for an answer which never comes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.model.event import TransactionPart
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import read_until
from tests.servers import Database

_NAMES = {"mysql": "rpl_semi_sync_source", "mariadb": "rpl_semi_sync_master"}
AFTER_SYNC = "AFTER_SYNC"
"""Commits wait between the log and their becoming visible."""
AFTER_COMMIT = "AFTER_COMMIT"
"""Commits wait when they are visible already."""


class SemiSync:
    """From ``__enter__`` to ``release`` commits on the server wait at ``wait_point``."""

    def __init__(self, engine: BinlogEngine, database: Database, wait_point: str = AFTER_SYNC):
        self._engine, self._database, self._wait_point = engine, database, wait_point
        self._name = _NAMES[engine.kind]

    def __enter__(self) -> SemiSync:
        plugins = "SELECT * FROM mysql.plugin WHERE name = 'rpl_semi_sync_source'"
        if self._engine is MYSQL and not self._database.query(plugins):
            self._database.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
        self._database.execute(
            f"SET GLOBAL {self._name}_timeout = 600000",
            f"SET GLOBAL {self._name}_wait_point = '{self._wait_point}'",
            f"SET GLOBAL {self._name}_enabled = 1",
        )
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def release(self) -> None:
        """Commits wait no longer; those that do become visible."""
        self._database.execute(f"SET GLOBAL {self._name}_enabled = 0")


class HangingUpdate:
    """T1: key 5 becomes 'NEW', its event is delivered, and its client still waits."""

    def __init__(
        self, semi_sync: SemiSync, part: TransactionPart, writer: Future[Any], pool: ThreadPoolExecutor
    ):
        self.part, self.pool = part, pool
        self._semi_sync, self._writer = semi_sync, writer

    def waits(self) -> bool:
        """Whether it does."""
        return not self._writer.done()

    def finish(self) -> None:
        """Lets it return."""
        self._semi_sync.release()
        self._writer.result(30)


@contextmanager
def hanging_update(
    engine: BinlogEngine, database: Database, log: BinlogReader, wait_point: str = AFTER_SYNC
) -> Iterator[HangingUpdate]:
    """T1 as it hangs; it returns at the end, if not before."""
    with ThreadPoolExecutor(2) as pool, SemiSync(engine, database, wait_point) as semi_sync:
        writer = pool.submit(database.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
        (part,) = read_until(log, lambda read: bool(read.parts())).parts()
        update = HangingUpdate(semi_sync, part, writer, pool)
        assert update.waits()
        yield update
        update.finish()
