"""Transactions taken in one go say what the state machine says of them, among all others and wherever cut."""

from __future__ import annotations

import random
from collections.abc import Container, Iterator, Sequence

import pytest

from migrator.binlog.log_reader import BinlogReader
from migrator.binlog.packet_stream import PacketStream
from migrator.binlog.whole_transactions import WholeTransactions
from migrator.model.event import LogProgress, LogRecord, TransactionPart
from migrator.model.position import Position
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

Taken = tuple[int, list[TransactionPart], int]


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


def records(reader: BinlogReader, begin: Position, end: Position) -> list[LogRecord]:
    """All but progress, which depends on when what arrived."""
    reader.start(begin)
    return [record for record in read_to(reader, end).records if not isinstance(record, LogProgress)]


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
    at_once = records(reader, begin, end)
    assert sum(len(parts) for _, parts, _ in taken) > 20

    arrive = PacketStream.events

    def singly(self: PacketStream, timeout_s: float) -> list[bytes]:
        """One event at a time: no transaction is ever whole at hand."""
        waiting: list[bytes] = self.__dict__.setdefault("waiting", [])
        waiting += [] if waiting else arrive(self, timeout_s)
        return [waiting.pop(0)] if waiting else []

    taken.clear()
    monkeypatch.setattr(PacketStream, "events", singly)
    assert records(reader, begin, end) == at_once
    assert taken
    assert not any(parts for _, parts, _ in taken)
    reader.close()
