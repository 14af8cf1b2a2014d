"""The visibility race: a commit is in the log, and delivered, before a SELECT can see it.

Placed, not hoped for: with a synchronous standby that doesn't exist, T1 waits after its commit record was written.
"""

from __future__ import annotations

import pytest

from migrator.adapters.postgres.settings import MESSAGE, WATERMARK, WITNESS
from migrator.adapters.postgres.watermark import PostgresWatermarkWriter
from migrator.model.chunk import ChunkRequest
from migrator.model.event import MarkKind, TransactionPart, WatermarkSeen
from tests.fix_postgres_commits import (
    COUNTERS,
    Capturing,
    HangingCommit,
    chunks_under_writers,
    let_go,
    no_standby_answers,
)
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    chunk_reader,
    log_reader,
    parts,
    prepared,
    read_until,
    source_of,
)
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


@pytest.fixture
def one_table(old_pg: Database) -> Database:
    """Ten rows (k, 'old'), and the watermark table."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'old' FROM generate_series(1, 10) g",
        *WATERMARK_TABLE,
    )
    return old_pg


@pytest.mark.parametrize(
    ("placement", "witness"),
    [(WITNESS, True), (WATERMARK, True), (MESSAGE, True), (WATERMARK, False), (MESSAGE, False)],
)
def test_a_commit_that_is_delivered_before_it_is_visible_wins_over_the_chunk(
    postgres: PostgresServer, one_table: Database, placement: str, witness: bool
) -> None:
    """Marks alone let the old row follow the new one, as a row or as a message: the witness is needed with each."""
    source = source_of(one_table, placement=placement)
    (schema,) = prepared(source, "t")
    with (
        no_standby_answers(postgres.admin, one_table),
        Capturing(source, schema, witness=witness) as capturing,
    ):
        t1 = HangingCommit(one_table, "UPDATE t SET v = 'NEW' WHERE k = 5")
        (part,) = parts(capturing.deliver())
        assert part.id == (t1.xid,)
        chunk = capturing.read_chunk()
        assert chunk.rows.to_pylist()[4] == {"k": 5, "v": "old"}
        capturing.deliver()
        assert capturing.chunks_placed == 1
        assert capturing.rows["5",] == ("5", "NEW" if witness else "old")
        assert len(capturing.rows) == 10
        let_go(postgres.admin)
        t1.finish()


def test_the_plain_window_emits_a_stale_row_and_the_witness_does_not(
    postgres: PostgresServer, one_table: Database
) -> None:
    source = source_of(one_table, placement=WATERMARK)
    schemas = prepared(source, "t")
    with (
        no_standby_answers(postgres.admin, one_table),
        log_reader(source, schemas) as log,
        chunk_reader(source) as chunks,
    ):
        t1 = HangingCommit(one_table, "UPDATE t SET v = 'NEW' WHERE k = 5")

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

        let_go(postgres.admin)
        t1.finish()
        assert chunks.witness().contains((t1.xid,))
        fresh = chunks.read(ChunkRequest(2, schemas[0].id, None, 100), schemas[0])
        assert {row["k"]: row["v"] for row in fresh.rows.to_pylist()}[5] == "NEW"


def test_everything_a_chunk_shows_was_delivered_once_the_log_is_read_to_its_high_position(
    old_pg: Database,
) -> None:
    """Writers of both kinds of commit run while chunks are read; the rule of ``Chunk.high`` must hold for each."""
    old_pg.execute(*COUNTERS)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    assert chunks_under_writers(old_pg, source, schema, 40).behind > 0, "no chunk row was ever overtaken"
