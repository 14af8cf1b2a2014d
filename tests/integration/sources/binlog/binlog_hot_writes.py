"""Chunks read while many sessions update the same few rows, and what their witnesses must then hold to."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import TransactionPart
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import DEADLINE_S, read_to, source_of
from tests.servers import Database

PLAIN = ("UPDATE t SET v = '{version}' WHERE id = {key}",)
XA = ("XA START 'k{key}'", *PLAIN, "XA END 'k{key}'", "XA PREPARE 'k{key}'", "XA COMMIT 'k{key}'")


@dataclass(frozen=True, slots=True)
class HotWrites:
    """Chunks of table ``t``, and its log from before the first to after the last one."""

    keys: range
    chunks: list[Chunk]
    parts: list[TransactionPart]


def hot_writes(engine: BinlogEngine, one_row: Database, statements: Sequence[str]) -> HotWrites:
    """One writer a key raises its version by these statements, again and again, beside a chunk reader."""
    keys = range(5, 13)
    one_row.execute("UPDATE t SET v = '0'", *(f"INSERT INTO t VALUES ({key}, '0')" for key in keys[1:]))
    source = source_of(one_row)
    log, (schema,) = engine.started(source, "t")
    reader, stop = engine.chunk_reader(source), threading.Event()
    written = dict.fromkeys(keys, 0)

    def write(key: int) -> None:
        with one_row.connect() as connection, connection.cursor() as cursor:
            while not stop.is_set():
                written[key] += 1
                for statement in statements:
                    cursor.execute(statement.format(key=key, version=written[key]))

    chunks: list[Chunk] = []
    deadline = time.monotonic() + DEADLINE_S
    with ThreadPoolExecutor(len(keys)) as pool:
        try:
            writers = [pool.submit(write, key) for key in keys]
            # on a slow disk a hundred reads meet few commits
            while len(chunks) < 100 or sum(written.values()) <= 100:
                assert time.monotonic() < deadline, written
                chunks.append(reader.read(ChunkRequest(len(chunks), schema.id, None, 100), schema))
        finally:
            stop.set()
        for writer in writers:
            writer.result(30)
    parts = read_to(log, engine.end(source)).parts()
    reader.close()
    log.close()
    assert len(parts) == sum(written.values())
    return HotWrites(keys, chunks, parts)


def versions(chunk: Chunk) -> dict[str, int]:
    """The version of each key in a chunk."""
    return {str(row["id"]): int(row["v"]) for row in chunk.rows.to_pylist()}


def expect_between(hot: HotWrites) -> list[tuple[Chunk, dict[str, int]]]:
    """A row is never older than what the witness contains, never newer than what the log has up to ``high``.

    Gives each chunk with the versions that its witness contains.
    """
    found = []
    for chunk in hot.chunks:
        assert chunk.witness is not None
        least, most = ({str(key): 0 for key in hot.keys} for _ in range(2))
        for part in hot.parts:
            after = {str(c.after[0]): int(str(c.after[1])) for c in part.changes if c.after}
            if chunk.witness.contains(part.id):
                least.update(after)
            if part.position <= chunk.high:
                most.update(after)
        rows = versions(chunk)
        assert rows.keys() == least.keys()
        assert all(least[key] <= rows[key] <= most[key] for key in rows), (least, rows, most)
        found.append((chunk, least))
    return found
