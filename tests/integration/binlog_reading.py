"""Reading a MySQL or MariaDB source in tests: the source of a database, and loops that wait with deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import URL

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.connections.mysql.settings import BinlogSource, default_server_id
from migrator.errors import SourceError
from migrator.model.event import (
    LogProgress,
    LogRecord,
    Operation,
    Row,
    RowChange,
    SchemaChange,
    TransactionPart,
)
from migrator.model.position import Position
from migrator.model.table import TableSchema
from migrator.ports.source import LogReader
from migrator.schema.control import upgrade_source
from tests.integration.binlog_engine import BinlogEngine
from tests.servers import Database, server_and_rest

DEADLINE_S = 30.0


def source_of(database: Database, /, **settings: Any) -> BinlogSource:
    server, rest = server_and_rest(database, {"tls": "disable", **settings})
    return BinlogSource(
        server, **{"migration": "test", "server_id": default_server_id(database.database), **rest}
    )


@dataclass
class Read:
    """What a log reader delivered."""

    records: list[LogRecord] = field(default_factory=list)

    def parts(self) -> list[TransactionPart]:
        return [record for record in self.records if isinstance(record, TransactionPart)]

    def changes(self) -> list[RowChange]:
        return [change for part in self.parts() for change in part.changes]

    def schemas(self) -> list[TableSchema]:
        return [record.schema for record in self.records if isinstance(record, SchemaChange)]

    def reached(self) -> int:
        orders = [
            record.position.order
            for record in self.records
            if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last)
        ]
        return max(orders, default=-1)


def read_until(reader: LogReader, done: Callable[[Read], bool], into: Read | None = None) -> Read:
    """Reads until ``done``; fails at the deadline."""
    read = into or Read()
    deadline = time.monotonic() + DEADLINE_S
    while not done(read):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not delivered in {DEADLINE_S} s; read so far: {read.records[-5:]}")
        read.records += reader.read(0.2)
    return read


def read_to(reader: LogReader, end: Position, into: Read | None = None) -> Read:
    """Reads until everything up to ``end`` is delivered."""
    return read_until(reader, lambda read: read.reached() >= end.order, into)


def expect_stop(
    engine: BinlogEngine, database: Database, reader: BinlogReader, statement: str, error: type[SourceError]
) -> None:
    """After rows that are delivered, the statements (separated by "; ") stop the reader of ``account``."""
    database.execute("INSERT INTO other VALUES (7)", "INSERT INTO account VALUES (7, 'seen', 1)")
    database.execute(*statement.split("; "))
    read = Read()
    with pytest.raises(error) as stopped:
        read_until(reader, lambda _: False, read)
    assert type(stopped.value) is error
    assert [change.after[0] for change in read.changes() if change.after] == ["7"]
    message = str(stopped.value)
    assert "account" in message
    assert engine.gtid in message
    assert stopped.value.remedy


def now_us(cursor: Any) -> int:
    """The server's clock, in microseconds since 1970."""
    cursor.execute("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)")
    return int(cursor.fetchone()[0])


def fold(changes: Sequence[RowChange], key_places: Sequence[int]) -> dict[tuple[Any, ...], Row]:
    """The rows a table has after the changes."""
    rows: dict[tuple[Any, ...], Row] = {}
    for change in changes:
        if change.before is not None:
            before = rows.pop(tuple(change.before[place] for place in key_places))
            assert before == change.before
        if change.operation is not Operation.DELETE:
            assert change.after is not None
            rows[tuple(change.after[place] for place in key_places)] = change.after
    return rows


def make_watermark_table(database: Database) -> None:
    """As a run with that placement makes it: the servers are shared, and one made by hand would be in its way."""
    upgrade_source(
        URL.create(
            f"{database.kind}+pymysql",
            database.user,
            database.password or None,
            database.host,
            database.port,
            database.database,
        )
    )


@contextmanager
def max_allowed_packet(database: Database, size: int) -> Iterator[None]:
    """The setting of a spare server, for as long as the block runs; ``size`` in bytes.

    Then a new file of the log begins: MariaDB can't look behind an event that is larger than its packets.
    """
    ((before,),) = database.query("SELECT @@GLOBAL.max_allowed_packet")
    database.execute(f"SET GLOBAL max_allowed_packet = {size}")
    try:
        yield
    finally:
        database.execute(f"SET GLOBAL max_allowed_packet = {before}", "FLUSH BINARY LOGS")
