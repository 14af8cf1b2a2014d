"""The visibility race: a commit is in the log, and delivered, before a SELECT can see it.

Placed, not hoped for: with a synchronous standby that doesn't exist, T1 waits after its commit record was written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from migrator.adapters.postgres.catalog import PostgresCatalog
from migrator.adapters.postgres.settings import WATERMARK
from migrator.adapters.postgres.watermark import PostgresWatermarkWriter
from migrator.model.chunk import ChunkRequest
from migrator.model.event import MarkKind, TransactionId, TransactionPart, WatermarkSeen
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    chunk_reader,
    log_reader,
    parts,
    prepared,
    read_to,
    read_until,
    source_of,
    wait_for,
)
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


@pytest.fixture
def ghost_standby(postgres: PostgresServer, old_pg: Database) -> Iterator[Database]:
    """A source whose sessions with synchronous_commit=on wait for a standby that never comes."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'old' FROM generate_series(1, 10) g",
        *WATERMARK_TABLE,
        f'ALTER DATABASE "{old_pg.database}" SET synchronous_commit = local',
    )
    try:
        yield old_pg
    finally:
        postgres.admin.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


class HangingCommit:
    """T1: an update whose COMMIT hangs after its commit record is in the log."""

    def __init__(self, database: Database, statement: str):
        self._connection = database.connect(autocommit=False)
        self._connection.execute("SET synchronous_commit = on")
        self._connection.execute(statement)
        row = self._connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        self.xid = int(row[0]) % 2**32
        self._thread = threading.Thread(target=self._connection.commit, daemon=True)
        self._thread.start()
        pid = self._connection.info.backend_pid
        wait_for(database, f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {pid}")

    def finish(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._connection.close()


def test_the_plain_window_emits_a_stale_row_and_the_witness_does_not(
    postgres: PostgresServer, ghost_standby: Database
) -> None:
    source = source_of(ghost_standby, placement=WATERMARK)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as log, chunk_reader(source) as chunks:
        postgres.admin.execute(
            "ALTER SYSTEM SET synchronous_standby_names = 'ghost'", "SELECT pg_reload_conf()"
        )
        wait_for(ghost_standby, "SELECT current_setting('synchronous_standby_names') = 'ghost'")
        t1 = HangingCommit(ghost_standby, "UPDATE t SET v = 'NEW' WHERE k = 5")

        marks = PostgresWatermarkWriter(source)
        marks.write("w", MarkKind.LOW)
        chunk = chunks.read(ChunkRequest(1, schemas[0].id, None, 100, "w"), schemas[0])
        marks.write("w", MarkKind.HIGH)
        marks.close()
        records = read_until(
            log, lambda seen: any(isinstance(r, WatermarkSeen) and r.kind is MarkKind.HIGH for r in seen)
        )

        story = [r for r in records if isinstance(r, TransactionPart | WatermarkSeen)]
        assert isinstance(story[0], TransactionPart), "T1 must be delivered BEFORE the low watermark"
        assert [type(r) for r in story[1:]] == [WatermarkSeen, WatermarkSeen], "the window itself is empty"
        (event,) = story[0].changes
        stale = {row["k"]: row["v"] for row in chunk.rows.to_pylist()}
        assert event.after == ("5", "NEW")
        assert stale[5] == "old"  # DBLog as published would now emit this, after NEW

        assert story[0].id == (t1.xid,)
        assert chunk.witness is not None
        assert not chunk.witness.contains((t1.xid,))
        assert not chunks.witness().contains((t1.xid,))

        postgres.admin.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        t1.finish()
        assert chunks.witness().contains((t1.xid,))
        fresh = chunks.read(ChunkRequest(2, schemas[0].id, None, 100), schemas[0])
        assert {row["k"]: row["v"] for row in fresh.rows.to_pylist()}[5] == "NEW"


def test_everything_a_chunk_shows_was_delivered_once_the_log_is_read_to_its_high_position(
    old_pg: Database,
) -> None:
    """Writers of both kinds of commit run while chunks are read; the rule of ``Chunk.high`` must hold for each."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v bigint)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    stop = threading.Event()

    def write(setting: str) -> None:
        connection = old_pg.connect()
        connection.execute(f"SET synchronous_commit = {setting}")
        while not stop.is_set():
            connection.execute("UPDATE t SET v = v + 1 WHERE k = 1 + (random() * 19)::int")
        connection.close()

    writers = [threading.Thread(target=write, args=[setting]) for setting in ("on", "off", "off")]
    delivered: dict[int, int] = dict.fromkeys(range(1, 21), 0)
    recent: list[
        tuple[int, TransactionId]
    ] = []  # also from before the chunk: it may not have seen those either
    ahead = behind = 0
    with log_reader(source, [schema]) as log, chunk_reader(source) as chunks:
        for writer in writers:
            writer.start()
        try:
            for number in range(40):
                chunk = chunks.read(ChunkRequest(number + 1, schema.id, None, 100), schema)
                assert chunk.witness is not None
                for part in parts(read_to(log, chunk.high)):
                    for change in part.changes:
                        assert change.after is not None
                        key, version = int(str(change.after[0])), int(str(change.after[1]))
                        assert version == delivered[key] + 1
                        delivered[key] = version
                        recent.append((key, part.id))
                recent = [(key, id) for key, id in recent if not chunk.witness.contains(id)]
                unseen = {key for key, _ in recent}
                for row in chunk.rows.to_pylist():
                    assert row["v"] <= delivered[row["k"]], "the chunk shows a change that was not delivered"
                    if row["v"] < delivered[row["k"]]:
                        behind += 1
                        assert row["k"] in unseen, "a stale row that the witness did not reveal"
                    else:
                        ahead += 1
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        read_to(log, PostgresCatalog(source).position())
    assert ahead > 0
    assert behind > 0, "no chunk row was ever overtaken: nothing was shown"
