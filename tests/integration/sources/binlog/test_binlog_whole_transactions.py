"""Transactions taken in one go say what the state machine says of them, among all others and wherever cut."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Container, Iterator, Sequence

import pytest

from migrator.adapters.sources.binlog.transactions import log_reader
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.binlog.transactions.whole_transactions import WholeTransactions
from migrator.adapters.sources.binlog.wire.packet_stream import PacketStream
from migrator.model.event import LogProgress, LogRecord, TransactionPart
from migrator.model.position import Position
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

Taken = tuple[int, list[TransactionPart], int, bool]


def history(engine: BinlogEngine, dice: random.Random) -> Iterator[str]:
    """Statements: small transactions of one and of two tables, and everything else that may stand between them."""
    for number in range(150):
        key = dice.randrange(40)
        small = [
            f"INSERT INTO account VALUES ({key}, 'n{number}', {number}) ON DUPLICATE KEY UPDATE name = VALUES(name)",
            f"UPDATE IGNORE account SET id = id + 40, name = NULL WHERE id = {key}",
            f"DELETE FROM account WHERE id IN ({key}, {key + 40})",
            f"INSERT INTO other VALUES ({number})",
        ]
        what = dice.random()
        if what < 0.6:
            yield dice.choice(small)
        elif what < 0.8:
            yield "BEGIN"
            yield from dice.sample(small, 3)
            yield dice.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        elif what < 0.85:
            yield from ("BEGIN", small[0], "SAVEPOINT s", small[1], "ROLLBACK TO s", small[3], "COMMIT")
        elif what < 0.9:
            yield f"INSERT INTO account SELECT {1000 * number} + n, 'many', n FROM numbers"
        elif what < 0.95:
            yield dice.choice(["FLUSH BINARY LOGS", "FLUSH TABLES", f"ALTER TABLE other COMMENT '{number}'"])
        else:
            yield from (f"XA START '{number}'", small[0], f"XA END '{number}'", f"XA PREPARE '{number}'")
            yield dice.choice([f"XA COMMIT '{number}'", f"XA ROLLBACK '{number}'"])


def records(
    reader: BinlogReader, begin: Position, end: Position
) -> tuple[list[LogRecord], dict[int, Position]]:
    """All but progress, which depends on when what arrived; and the places that it told, by their orders."""
    reader.start(begin)
    found = read_to(reader, end).records
    places = {record.position.order: record.position for record in found if isinstance(record, LogProgress)}
    return [record for record in found if not isinstance(record, LogProgress)], places


@pytest.mark.parametrize("tables", [["account"], ["account", "other"]])
def test_both_ways_give_the_same(
    engine: BinlogEngine, accounts: Database, monkeypatch: pytest.MonkeyPatch, tables: list[str]
) -> None:
    accounts.execute("CREATE TABLE numbers (n int PRIMARY KEY)")
    accounts.execute(f"INSERT INTO numbers VALUES {', '.join(f'({n})' for n in range(1, 151))}")
    source = source_of(accounts)
    begin = engine.end(source)
    with accounts.connect() as connection, connection.cursor() as cursor:
        for statement in history(engine, random.Random(7)):
            cursor.execute(statement)
        cursor.execute("INSERT INTO other VALUES (999)")
    end = engine.end(source)
    reader = engine.log_reader(source, engine.catalog(source).tables(tables))
    original = WholeTransactions.taken
    taken: list[Taken] = []

    def counted(
        self: WholeTransactions, raw: Sequence[bytes], at: int, announced: Container[int], most: int
    ) -> Taken:
        taken.append(original(self, raw, at, announced, most))
        return taken[-1]

    monkeypatch.setattr(WholeTransactions, "taken", counted)
    monkeypatch.setattr(log_reader, "_PROGRESS_EVERY_S", 0.0)
    at_once, some_places = records(reader, begin, end)
    assert sum(len(parts) for _, parts, _, _ in taken) > 20
    if "other" not in tables:
        assert any(nothing for _, _, _, nothing in taken), "those of a table that nobody captures, too"
        assert end.order in some_places

    arrive = PacketStream.events

    def singly(self: PacketStream, timeout_s: float, gather: bool = False) -> list[bytes]:
        """One event at a time: no transaction is ever whole at hand."""
        waiting: list[bytes] = self.__dict__.setdefault("waiting", [])
        waiting += [] if waiting else arrive(self, timeout_s, gather)
        return [waiting.pop(0)] if waiting else []

    taken.clear()
    monkeypatch.setattr(PacketStream, "events", singly)
    one_by_one, places = records(reader, begin, end)
    assert one_by_one == at_once
    common = places.keys() & some_places.keys()
    assert {order: places[order] for order in common} == {order: some_places[order] for order in common}
    assert end.order in common or "other" in tables
    assert taken
    assert not any(parts or nothing for _, parts, _, nothing in taken)
    reader.close()


def test_places_behind_what_nobody_captures_are_told_now_and_then_and_rows_at_once(
    engine: BinlogEngine, accounts: Database
) -> None:
    source = source_of(accounts)
    reader = engine.log_reader(source, engine.catalog(source).tables(["account"]))
    reader.start(engine.end(source))

    def write() -> None:
        with accounts.connect() as connection, connection.cursor() as cursor:
            for number in range(300):
                cursor.execute(f"INSERT INTO other VALUES ({number})")
            cursor.execute("INSERT INTO account VALUES (1, 'last', 1)")

    writer = threading.Thread(target=write)
    began = time.monotonic()
    writer.start()
    read = read_until(reader, lambda read: bool(read.parts()))
    took_s = time.monotonic() - began
    writer.join()
    reader.close()
    told = sum(isinstance(record, LogProgress) for record in read.records)
    assert [change.after and change.after[1] for change in read.changes()] == ["last"]
    assert 1 <= told <= took_s / 0.02 + 3
