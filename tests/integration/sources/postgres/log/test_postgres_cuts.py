"""The stream cut at arbitrary bytes: reading goes on at the exact row, nothing comes twice, nothing is lost."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.core.capture import Capture, EmitPart
from migrator.core.dump import DumpPlan
from migrator.errors import MigratorError
from migrator.model.event import LogRecord, RowChange, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.table import TableSchema
from migrator.run.capture.inputs import Inputs, Reconnected, Records
from migrator.run.capture.source_threads import LogPump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from tests.fix_postgres_history import CuttingProxy, history
from tests.fix_postgres_source import (
    DEADLINE_S,
    log_reader,
    parts,
    prepared,
    read_to,
    source_of,
    stream_at_once,
)
from tests.servers import Database

pytestmark = pytest.mark.integration

Event = tuple[int, int, RowChange]


def events(all_parts: Sequence[TransactionPart]) -> list[Event]:
    """Each change with its version: position of its transaction, and index in it."""
    return [
        (part.position.order, part.first_index + place, change)
        for part in all_parts
        for place, change in enumerate(part.changes)
    ]


def captured(
    source: PostgresSource, schema: TableSchema, after: Position, end: Position
) -> tuple[list[Event], list[Event]]:
    """What capture lets out up to ``end``, and what it read for that, with the pump of a real run."""
    inputs: Inputs = queue.Queue()
    pump = LogPump(lambda: PostgresLogReader(source, [schema]), after, inputs, Progress())
    core = Capture(Checkpoint(after), {schema.id: schema}, DumpPlan([], 100), lambda *_: (None, 0))
    let_out: list[TransactionPart] = []
    read: list[LogRecord] = []
    until = time.monotonic() + DEADLINE_S
    while core.checkpoint().position < end:
        assert time.monotonic() < until, "not within the deadline"
        try:
            pump.read_once(Stopping())
        except MigratorError as error:
            pump.disconnected(error)  # raises what trying again can't help
        while not inputs.empty():
            item = inputs.get()
            if isinstance(item, Reconnected):
                core.on_reconnect()
                continue
            assert isinstance(item, Records)
            read += item.records
            for record in item.records:
                let_out += [each.part for each in core.on_record(record) if isinstance(each, EmitPart)]
        # Not further: the next history is read from here, and the server sends nothing from before what it
        # was told.
        pump.acknowledge(min(core.checkpoint().position, end))
    stopping = Stopping()
    stopping.request()
    pump.run(stopping)
    return events(let_out), events(parts(read))


@pytest.mark.parametrize("streaming", [True, False])
def test_any_cuts_of_the_stream_lose_nothing_and_repeat_nothing(old_pg: Database, streaming: bool) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    stream_at_once(old_pg)
    source = source_of(old_pg, streaming=streaming, part_rows=2)
    (schema,) = prepared(source, "t")
    cuts_done = read_again = 0
    after = PostgresCatalog(source).position()
    for seed in range(4):
        large = f"SELECT {10000 * (seed + 1)} + g, repeat('x', 500) FROM generate_series(1, 100) g"
        old_pg.execute(f"INSERT INTO t {large}")
        history(old_pg, seed)
        end = PostgresCatalog(source).position()
        with log_reader(source, [schema], after) as reader:
            expected = events(parts(read_to(reader, end)))
        assert len(expected) > 50
        dice = random.Random(seed)
        cuts = [int(2 ** dice.uniform(0, 14)) for _ in range(12)]
        with CuttingProxy(source.server.host, source.server.port, cuts) as proxy:
            through = replace(source, server=replace(source.server, host="127.0.0.1", port=proxy.port))
            let_out, read = captured(through, schema, after, end)
            cuts_done += proxy.done
        assert let_out == expected
        read_again += len(read) - len(expected)
        after = end
    assert cuts_done > 20
    # A streamed transaction is whole before its first row is handed on.
    assert streaming or read_again > 0, "no cut ever fell into a transaction: nothing was shown"
