"""A stream cut at any byte, any number of times: every change is delivered exactly once, in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.connections.mysql.packet_buffer import PacketBuffer
from migrator.errors import ConnectionFailed
from migrator.model.event import LogProgress, RowChange, TransactionPart
from migrator.model.position import Position
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


class Line:
    """The connection: cut after ``left`` more bytes of the stream (None: never)."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.passed = 0

    def receive_now(self, buffer: PacketBuffer) -> bool:
        if self.left == 0:
            raise EOFError("cut")
        try:
            piece = buffer._sock.recv(1 << 20 if self.left is None else min(self.left, 1 << 20))
        except (BlockingIOError, InterruptedError):
            return False
        if not piece:
            raise EOFError("the server closed the connection")
        self.passed += len(piece)
        if self.left is not None:
            self.left -= len(piece)
        buffer._append(piece)
        return True


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    found = Line()
    monkeypatch.setattr(PacketBuffer, "receive_now", lambda buffer: found.receive_now(buffer))
    return found


def write(engine: BinlogEngine, database: Database) -> None:
    """Transactions in parts, small and foreign ones, DDL, rotation, compression, an XA transaction across all."""
    with database.connect() as connection, connection.cursor() as cursor:
        for statement in (
            "INSERT INTO account VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5)",
            "UPDATE account SET id = id + 100",
            "XA START 'x'",
            "INSERT INTO account VALUES (50, 'xa', 1), (51, 'xa', 1), (52, 'xa', 1)",
            "XA END 'x'",
            "XA PREPARE 'x'",
        ):
            cursor.execute(statement)
    with database.connect() as connection, connection.cursor() as cursor:
        if engine.kind == "mysql":
            cursor.execute("SET SESSION binlog_transaction_compression = ON")
        for statement in (
            "INSERT INTO account VALUES (20, 'z', 1), (21, 'z', 1), (22, 'z', 1)",
            "FLUSH BINARY LOGS",
            "CREATE TABLE aside (id int)",
            "INSERT INTO other VALUES (1)",
            "ALTER TABLE other COMMENT 'x'",
            "DELETE FROM account WHERE id IN (20, 101)",
            "XA COMMIT 'x'",
            "DELETE FROM account WHERE id = 50",
        ):
            cursor.execute(statement)


class Delivered:
    """What comes of a stream that is cut and begun again, as the log's thread and the core put it together."""

    def __init__(self, place: Position):
        self.place = place
        self.changes: list[RowChange] = []
        self._reached = (place.order, 0)

    def take(self, record: Any) -> None:
        if isinstance(record, TransactionPart):
            for index, change in enumerate(record.changes, record.first_index):
                version = (record.position.order, index + 1)
                if version > self._reached:  # parts read again are known
                    self._reached = version
                    self.changes.append(change)
        if isinstance(record, LogProgress) or getattr(record, "last", False):
            self.place = record.position


def read_with_cuts(
    reader: BinlogReader, line: Line, begin: Position, end: Position, cuts: Iterator[int]
) -> Delivered:
    delivered = Delivered(begin)
    while delivered.place < end:
        line.left = next(cuts, None)
        try:
            reader.start(delivered.place)
            while delivered.place < end:
                for record in reader.read(0.2):
                    delivered.take(record)
        except ConnectionFailed as cut:
            if not cut.retryable:
                raise
    line.left = None
    return delivered


@pytest.fixture
def recorded(
    engine: BinlogEngine, accounts: Database, line: Line
) -> Iterator[tuple[BinlogReader, Position, Position, list[RowChange], int]]:
    source = source_of(accounts, part_rows=2)
    begin = engine.end(source)
    write(engine, accounts)
    end = engine.end(source)
    reader = engine.log_reader(source, engine.catalog(source).tables(["account"]))
    reader.start(begin)
    whole = read_to(reader, end).changes()
    assert len(whole) == 19
    yield reader, begin, end, whole, line.passed
    reader.close()


@pytest.mark.slow
def test_one_cut_at_any_place(
    recorded: tuple[BinlogReader, Position, Position, list[RowChange], int], line: Line
) -> None:
    reader, begin, end, whole, size = recorded
    places = range(1, size, max(1, size // 25))
    for place in places:
        assert read_with_cuts(reader, line, begin, end, iter([place])).changes == whole, place


@pytest.mark.parametrize("seed", range(3))
def test_many_cuts(
    recorded: tuple[BinlogReader, Position, Position, list[RowChange], int], line: Line, seed: int
) -> None:
    reader, begin, end, whole, size = recorded
    rand = random.Random(seed)
    cuts = [rand.randrange(1, size // (1 + seed)) for _ in range(12)]
    assert read_with_cuts(reader, line, begin, end, iter(cuts)).changes == whole, cuts


def test_going_on_from_the_first_place_would_repeat(
    recorded: tuple[BinlogReader, Position, Position, list[RowChange], int], line: Line
) -> None:
    """What mysql-replication does after a cut: the comparison above can fail."""
    reader, begin, end, whole, size = recorded
    line.left = size - 200
    reader.start(begin)
    read = Read()
    with pytest.raises(ConnectionFailed):
        read_until(reader, lambda _: False, read)
    line.left = None
    reader.start(begin)
    seen = read.changes() + read_to(reader, end).changes()
    assert seen != whole
    assert seen[-len(whole) :] == whole
