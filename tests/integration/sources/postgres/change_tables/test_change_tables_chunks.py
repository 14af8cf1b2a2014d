"""Chunks beside change tables: the witness is exact under writers, and both ways give the same values."""

from __future__ import annotations

import threading

import pytest

from migrator.adapters.sources.postgres.change_tables.chunk_views import chunk_reader
from migrator.columnar.text import rows_to_table
from migrator.model.chunk import ChunkRequest
from migrator.model.event import TransactionId
from tests.fix_change_tables import captured, read_changes, started
from tests.fix_postgres_source import parts, read_to
from tests.integration.exact import assert_same
from tests.integration.sources.postgres.test_postgres_values import create, fill
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_a_transaction_that_hangs_is_in_neither_or_in_both(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'old'), (2, 'old')"
    )
    source, (schema,) = captured(old_pg, "t")
    chunks = chunk_reader(source)
    with started(source, [schema]) as log, old_pg.connect(autocommit=False) as hanging:
        hanging.execute("UPDATE t SET v = 'late' WHERE k = 1")
        old_pg.execute("UPDATE t SET v = 'early' WHERE k = 2")  # a younger transaction, visible first
        early = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        (first,) = parts(read_to(log, early.high))
        hanging.commit()
        late = chunks.read(ChunkRequest(2, schema.id, None, 10), schema)
        assert late.high > first.position, "what the chunk shows was not delivered yet"
        (second,) = parts(read_to(log, late.high))
    chunks.close()
    assert [row["v"] for row in early.rows.to_pylist()] == ["old", "early"]
    assert [row["v"] for row in late.rows.to_pylist()] == ["late", "early"]
    assert early.witness is not None
    assert late.witness is not None
    assert (early.witness.contains(first.id), early.witness.contains(second.id)) == (True, False)
    assert (late.witness.contains(first.id), late.witness.contains(second.id)) == (True, True)


def test_each_chunk_row_is_the_delivered_one_or_the_witness_reveals_it(old_pg: Database) -> None:
    """Writers with both kinds of commit; the versions of a key must come one by one, none twice, none left out."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v bigint)",
        "INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g",
    )
    source, (schema,) = captured(old_pg, "t")
    stop = threading.Event()

    def write(setting: str) -> None:
        with old_pg.connect() as connection:
            connection.execute(f"SET synchronous_commit = {setting}")
            while not stop.is_set():
                connection.execute("UPDATE t SET v = v + 1 WHERE k = 1 + (random() * 19)::int")

    writers = [threading.Thread(target=write, args=[setting]) for setting in ("on", "off", "off")]
    delivered = dict.fromkeys(range(1, 21), 0)
    recent: list[tuple[int, TransactionId]] = []
    behind = 0
    chunks = chunk_reader(source)
    with started(source, [schema]) as log:
        for writer in writers:
            writer.start()
        try:
            for number in range(30):
                chunk = chunks.read(ChunkRequest(number + 1, schema.id, None, 100), schema)
                assert chunk.witness is not None
                for part in parts(read_to(log, chunk.high)):
                    for change in part.changes:
                        assert change.after is not None
                        key, version = int(str(change.after[0])), int(str(change.after[1]))
                        assert version == delivered[key] + 1
                        delivered[key] = version
                        recent.append((key, part.id))
                unseen = {key for key, poll in recent if not chunk.witness.contains(poll)}
                for row in chunk.rows.to_pylist():
                    assert row["v"] == delivered[row["k"]] or (
                        row["v"] < delivered[row["k"]] and row["k"] in unseen
                    )
                    behind += row["v"] < delivered[row["k"]]
        finally:
            stop.set()
            for writer in writers:
                writer.join()
    chunks.close()
    assert behind > 0, "no chunk row was ever overtaken: nothing was shown"


def test_chunks_and_change_tables_agree_on_every_type(old_pg: Database) -> None:
    """Also that a domain's checks and strange column names do no harm to the application's statements."""
    create(old_pg)
    source, (schema,) = captured(old_pg, "v")
    chunks = chunk_reader(source)
    with started(source, [schema]) as log:
        rows = fill(old_pg, seed=1)
        old_pg.execute("UPDATE v SET id = id")
        chunk = chunks.read(ChunkRequest(1, schema.id, None, rows + 1), schema)
        seen = read_changes(log, source)
    chunks.close()
    assert chunk.row_count == rows
    inserted = [change.after for change in seen[:rows]]
    before = sorted((change.before for change in seen[rows:]), key=lambda row: int(str((row or ("0",))[0])))
    assert_same(chunk.rows, rows_to_table(schema, [row for row in inserted if row is not None]))
    assert_same(chunk.rows, rows_to_table(schema, [row for row in before if row is not None]))
