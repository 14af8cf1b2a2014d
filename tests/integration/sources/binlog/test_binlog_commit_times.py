"""When a transaction was committed: MySQL's log says it to the microsecond, MariaDB's in whole seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import now_us, read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

Write = Callable[[Any], None]
ROWS = ", ".join(f"({number}, 'r', 1)" for number in range(1000, 1300))


def small(cursor: Any) -> None:
    cursor.execute("INSERT INTO account VALUES (1, 'a', 1)")


def large(cursor: Any) -> None:
    """More rows than are taken in one go."""
    cursor.execute(f"INSERT INTO account VALUES {ROWS}")


def compressed(cursor: Any) -> None:
    name = "log_bin_compress" if maria(cursor) else "binlog_transaction_compression"
    cursor.execute(f"SET {'GLOBAL' if maria(cursor) else 'SESSION'} {name} = ON")
    try:
        large(cursor)
    finally:
        cursor.execute(f"SET {'GLOBAL' if maria(cursor) else 'SESSION'} {name} = OFF")


def prepared(cursor: Any) -> None:
    for statement in (
        "XA START 'x'",
        "INSERT INTO account VALUES (2, 'x', 1)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    ):
        cursor.execute(statement)
    cursor.execute("XA COMMIT 'x'")


def maria(cursor: Any) -> bool:
    cursor.execute("SELECT VERSION()")
    return "MariaDB" in cursor.fetchone()[0]


@pytest.mark.parametrize("write", [small, large, compressed, prepared])
def test_the_time_is_the_servers_at_the_commit(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader, write: Write
) -> None:
    """Between its clock before and after: what is cut to seconds, as MariaDB's, lies before both."""
    with accounts.connect() as connection, connection.cursor() as cursor:
        begin_us = now_us(cursor)
        while begin_us % 1_000_000 < 1000:  # so that its second's begin is before it
            begin_us = now_us(cursor)
        write(cursor)
        end_us = now_us(cursor)
    parts = read_to(reader, engine.end(source_of(accounts))).parts()
    (at_us,) = {part.committed_at_us for part in parts}
    if engine is MYSQL:
        assert begin_us <= at_us <= end_us
    else:
        assert begin_us - begin_us % 1_000_000 <= at_us <= end_us
        assert at_us % 1_000_000 == 0
