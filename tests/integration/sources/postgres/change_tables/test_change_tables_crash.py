"""A server that crashes forgets commits that were visible, and gives their transaction ids to others."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from migrator.adapters.sources.postgres.change_tables import log_reader
from migrator.adapters.sources.postgres.change_tables.chunk_views import chunk_reader
from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitPart
from migrator.core.dump import DumpPlan
from migrator.errors import ConnectionFailed
from migrator.model.chunk import ChunkRequest
from migrator.model.event import LogRecord, RowChange
from migrator.model.progress import Checkpoint
from migrator.model.table import TableSchema
from tests.fix_change_tables import captured, read_all, started
from tests.fix_postgres_source import changes, parts
from tests.integration.sources.postgres.forgetful_postgres import crash, forgetful_database, wal_writer_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def fragile() -> Iterator[Database]:
    with forgetful_database() as database:
        yield database


def forgotten_and_real(fragile: Database) -> tuple[list[RowChange], list[RowChange]]:
    """What is delivered of a commit that a crash forgets, and then of one that gets its transaction id."""
    fragile.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    source, schemas = captured(fragile, "t")
    fragile.execute("CHECKPOINT")
    wal_writer = wal_writer_of(fragile)
    with started(source, schemas) as reader, fragile.connect() as hasty:
        (begin,) = reader.read(0.0)
        os.kill(wal_writer, signal.SIGSTOP)
        hasty.execute("SET synchronous_commit = off")
        hasty.execute("INSERT INTO t VALUES (7, 'forgotten')")
        ((forgotten,),) = fragile.query('SELECT "__$start_lsn"::text FROM migrator_cdc."public_t_CT"')
        records = [begin, *(record for _ in range(5) for record in reader.read(0.05))]
        crash(fragile, wal_writer)
        with pytest.raises(ConnectionFailed):
            reader.read(0.1)
    assert fragile.query("SELECT * FROM t") == [], "the server must have forgotten it: else nothing is shown"
    fragile.execute("INSERT INTO t VALUES (8, 'real')")
    ((real,),) = fragile.query('SELECT "__$start_lsn"::text FROM migrator_cdc."public_t_CT"')
    assert real == forgotten, "the id must have been given out again: else nothing is shown"
    with started(source, schemas, records[-1].position) as reader:  # type: ignore[union-attr]
        return changes(records), changes(read_all(reader, source))


def test_what_a_crash_forgets_was_not_delivered_and_what_takes_its_id_is(fragile: Database) -> None:
    before, after = forgotten_and_real(fragile)
    assert before == []
    assert [change.after for change in after] == [("8", "real")]


def test_a_reader_that_does_not_wait_for_the_disk_invents_one_row_and_loses_the_other(
    fragile: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control, without the proof that these are the tables that were read: it would notice as well."""
    monkeypatch.setattr(log_reader, "on_disk", lambda execute, view, until: True)
    monkeypatch.setattr(log_reader, "check_same", lambda *told: None)
    before, after = forgotten_and_real(fragile)
    assert [change.after for change in before] == [("7", "forgotten")]
    assert after == []


def test_a_prepared_transaction_waits_for_its_outcome_over_a_crash_as_well(fragile: Database) -> None:
    fragile.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    source, schemas = captured(fragile, "t")
    position = None
    with started(source, schemas) as reader:
        for name in ("undone", "done"):
            fragile.execute(
                f"BEGIN; INSERT INTO t VALUES ({len(name)}, '{name}'); PREPARE TRANSACTION '{name}'"
            )
        fragile.execute("INSERT INTO t VALUES (1, 'meanwhile')")
        (part,) = parts(read_all(reader, source))
        assert [change.after for change in part.changes] == [("1", "meanwhile")]
        position = part.position
    wal_writer = wal_writer_of(fragile)
    crash(fragile, wal_writer)
    with started(source, schemas, position) as reader:
        assert changes(read_all(reader, source)) == []
        fragile.execute("ROLLBACK PREPARED 'undone'", "COMMIT PREPARED 'done'")
        assert [change.after for change in changes(read_all(reader, source))] == [("4", "done")]


def test_a_poll_in_parts_is_delivered_once_though_the_process_dies_between_them(old_pg: Database) -> None:
    """Through the core: what a checkpoint within the poll keeps is enough to go on with the next change."""
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY)")
    source, (schema,) = captured(old_pg, "t", part_rows=10)
    delivered: list[RowChange] = []
    with started(source, [schema]) as reader:
        core = core_of(Checkpoint(reader.read(0.0)[0].position), schema)  # type: ignore[union-attr]
        old_pg.execute("INSERT INTO t SELECT generate_series(1, 35)")
        while len(delivered) < 20:
            delivered += deliver(core, reader.read(0.1))
    kept = core.checkpoint()
    assert core.in_transaction()
    old_pg.execute("INSERT INTO t VALUES (99)")
    core = core_of(kept, schema)
    chunks = chunk_reader(source)
    chunk = chunks.read(ChunkRequest(1, schema.id, None, 100), schema)
    chunks.close()
    with started(source, [schema], kept.position) as reader:
        records = read_all(reader, source)
        delivered += deliver(core, records)
    assert [change.after for change in delivered] == [(str(n),) for n in [*range(1, 36), 99]]
    assert chunk.witness is not None
    assert all(chunk.witness.contains(part.id) for part in parts(records))


def core_of(checkpoint: Checkpoint, schema: TableSchema) -> Capture:
    """A core without dumps."""

    def drop(
        schema: TableSchema, rows: object, keys: frozenset[tuple[str | bytes | None, ...]]
    ) -> tuple[object, int]:
        kept = without_keys(schema, rows, keys)
        return kept, kept.num_rows

    return Capture(checkpoint, {schema.id: schema}, DumpPlan((), 10), drop)


def deliver(core: Capture, records: list[LogRecord]) -> list[RowChange]:
    outputs = [output for record in records for output in core.on_record(record)]
    return [change for output in outputs if isinstance(output, EmitPart) for change in output.part.changes]
