"""What every chunk reader must do, whoever reads: told by the source's own answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from migrator.errors import ConnectionFailed, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, LogProgress, TransactionPart
from migrator.model.position import Position
from migrator.model.requests.request import Scope
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader, LogReader
from tests.integration.capturing import Capturing
from tests.servers import Database

WORDS = ("a", "B", "b", "ä", "Z", "z'q", "", "10", "9", "back\\slash")
ROWS = 40
DEADLINE_S = 30.0
_OPEN = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
    "pg_backend_pid() AND (state LIKE 'idle in%' OR backend_xmin IS NOT NULL) AND backend_type = 'client backend'",
    "binlog": "SELECT count(*) FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p"
    " ON p.id = t.trx_mysql_thread_id WHERE p.db = database() AND p.id <> connection_id()",
}
_SESSIONS = {
    "postgresql": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid()",
    "binlog": "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()",
}


@dataclass(frozen=True)
class Read:
    """A source with a table ``t (word, k, v)`` of ``ROWS`` rows, and a reader of its chunks."""

    database: Database
    capture: Capturing
    reader: ChunkReader
    schema: TableSchema

    def chunk(self, after: Key | None = None, limit_rows: int = 1000, **more: object) -> Chunk:
        """One chunk."""
        request = ChunkRequest(1, self.schema.id, after, limit_rows, **more)  # type: ignore[arg-type]
        return self.reader.read(request, self.schema)

    def chunks(self, limit_rows: int) -> Iterator[Chunk]:
        """The whole table."""
        chunk = self.chunk(None, limit_rows)
        yield chunk
        while not chunk.final:
            chunk = self.chunk(chunk.last_key, limit_rows)
            yield chunk

    def rows(self, condition: str = "1 = 1") -> list[tuple[object, ...]]:
        """The judge: what the source itself answers, in its own order."""
        return self.database.query(f"SELECT word, k, v FROM t WHERE {condition} ORDER BY word, k")


def make_table(database: Database) -> None:
    """What ``Read`` needs."""
    rows = [(WORDS[n % len(WORDS)], n, f"v{n}") for n in range(ROWS)]
    escaped = "\\\\" if database.kind != "postgresql" else "\\"
    values = ", ".join(
        "('{}', {}, '{}')".format(word.replace("'", "''").replace("\\", escaped), k, v) for word, k, v in rows
    )
    database.execute(
        "CREATE TABLE t (word varchar(20), k int, v varchar(20), PRIMARY KEY (word, k))",
        f"INSERT INTO t VALUES {values}",
    )
    if database.kind == "postgresql":
        database.execute("ALTER TABLE t REPLICA IDENTITY FULL")


def brought(chunks: list[Chunk]) -> list[tuple[object, ...]]:
    """The rows of chunks, in order."""
    return [(row["word"], row["k"], row["v"]) for chunk in chunks for row in chunk.rows.to_pylist()]


def parts_up_to(log: LogReader, position: Position) -> list[TransactionPart]:
    """Transactions of the log, read until it has passed the position."""
    parts: list[TransactionPart] = []
    until = time.monotonic() + DEADLINE_S
    while True:
        assert time.monotonic() < until, "the log never came there"
        for record in log.read(0.2):
            if isinstance(record, TransactionPart):
                parts.append(record)
            if isinstance(record, LogProgress | TransactionPart) and record.position >= position:
                return parts


class ChunkReaderContract:
    """Subclass it with a fixture ``it`` that returns a ``Read``."""

    @pytest.mark.parametrize("limit_rows", [7, ROWS])
    def test_every_row_once_in_the_databases_own_order(self, it: Read, limit_rows: int) -> None:
        chunks = list(it.chunks(limit_rows))
        assert brought(chunks) == it.rows()
        assert len(chunks) >= ROWS / limit_rows
        assert [chunk.final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        assert all(chunk.row_count == chunk.rows.num_rows <= limit_rows for chunk in chunks)
        assert {chunk.schema_version for chunk in chunks} == {it.schema.version()}

    def test_bounds_are_found_first_and_bind(self, it: Read) -> None:
        rows = it.rows()
        asked = ChunkRequest(1, it.schema.id, None, 10, ahead=True)
        found = it.reader.bounded(asked, it.schema)
        assert (found.until, found.end) == tuple((str(w), str(k)) for w, k, _ in (rows[8], rows[-1]))
        # rows that come behind the end are not the chunk's, rows that go are not missed
        behind = f"INSERT INTO t SELECT word, 9999, 'new' FROM t WHERE k = {rows[-1][1]}"
        it.database.execute(behind, "DELETE FROM t WHERE k = 10")
        chunk = it.reader.read(found, it.schema)
        assert brought([chunk]) == [row for row in rows[:9] if row[1] != 10]
        assert (chunk.last_key, chunk.final) == (found.until, False)
        rest = it.chunk(found.until, end=found.end)
        assert brought([chunk, rest]) == [row for row in rows if row[1] != 10]
        assert rest.final

    def test_only_the_rows_of_the_scope(self, it: Read) -> None:
        listed = it.chunk(scope=Scope(keys=(("z'q", "5"), ("a", "0"), ("none", "1"))))
        assert sorted(brought([listed])) == sorted(it.rows("k IN (5, 0)"))
        assert listed.final
        assert brought([it.chunk(scope=Scope(predicate="k % 3 = 0"))]) == it.rows("k % 3 = 0")
        low, high = (("9", "8"), ("b", "12"))
        ranged = brought([it.chunk(scope=Scope(low=low, high=high))])
        rows = it.rows()
        first, last = ([(str(w), str(k)) for w, k, _ in rows].index(key) for key in (low, high))
        assert ranged == rows[first : last + 1] != []

    def test_witness_and_high_belong_to_the_rows(self, it: Read) -> None:
        with closing(it.capture.log_reader()) as log:
            log.start(None)
            before = it.chunk()
            it.database.execute("UPDATE t SET v = 'later' WHERE k = 3")
            after = it.chunk()
            newest = it.reader.witness()
            (part,) = parts_up_to(log, it.capture.catalog.position())
        values = [[row[2] for row in brought([chunk]) if row[1] == 3] for chunk in (before, after)]
        assert values == [["v3"], ["later"]]
        assert before.witness is not None
        assert not before.witness.contains(part.id)
        assert after.witness is not None
        assert after.witness.contains(part.id)
        assert newest is not None
        assert newest.contains(part.id)
        assert before.high < part.position <= after.high

    def test_a_table_that_changed_is_named(self, it: Read) -> None:
        it.chunk()
        it.database.execute("ALTER TABLE t DROP COLUMN v")
        with pytest.raises(SchemaError, match=r"\bv\b"):
            it.chunk()

    def test_nothing_stays_open_after_a_chunk(self, it: Read) -> None:
        it.chunk()
        it.reader.witness()
        kind = "postgresql" if it.database.kind == "postgresql" else "binlog"
        assert it.database.query(_OPEN[kind]) == [(0,)]

    def test_after_a_cut_it_connects_anew(self, it: Read) -> None:
        it.chunk()
        it.reader.witness()
        kind = "postgresql" if it.database.kind == "postgresql" else "binlog"
        for (session,) in it.database.query(_SESSIONS[kind]):
            if kind == "binlog":
                it.database.execute(f"KILL {session}")
        for attempt in (it.chunk, it.reader.witness):
            try:
                attempt()
            except ConnectionFailed as cut:
                if not cut.retryable:
                    raise
        assert brought([it.chunk()]) == it.rows()
        assert it.reader.witness() is not None

    def test_it_may_be_closed_twice_and_an_empty_table_is_one_chunk(self, it: Read) -> None:
        it.database.execute("DELETE FROM t")
        chunk = it.chunk()
        assert (chunk.row_count, chunk.last_key, chunk.final) == (0, None, True)
        assert chunk.rows.schema.names == ["word", "k", "v"]
        it.reader.close()
        it.reader.close()
