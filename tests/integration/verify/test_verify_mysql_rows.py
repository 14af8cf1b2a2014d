"""The judge's rows from the bytes of a connection: those that PyMySQL reads one by one, whatever their lengths."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from typing import Any

import pymysql
import pytest
from pymysql.cursors import SSCursor

from tests.integration.binlog_reading import max_allowed_packet
from tests.integration.judged import settings_of as settings
from tests.servers import Database, server_of
from verify.readers.mysql.rows import row_batches
from verify.readers.mysql.session import open_session, rows_of
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration

MANY = 1 << 16
"""The tables have twice as many rows."""
LENGTHS = (0, 1, 2, 249, 250, 251, 252, 253, 254, 255, 256, 65_534, 65_535, 65_536, 70_000)
LARGEST = 0xFFFFFF


@pytest.fixture
def session(old_binlog: Database) -> Iterator[Any]:
    """On MySQL, whose server has a certificate, through TLS."""
    tls = "require" if old_binlog.kind == "mysql" else "disable"
    with open_session(ServerSettings(server_of(old_binlog, tls=tls)), "source") as session:
        yield session


def one_by_one(session: Any, query: str) -> list[tuple[bytes | None, ...]]:
    with session.cursor(SSCursor) as cursor:
        cursor.execute(query)
        return [tuple(v.encode() if isinstance(v, str) else v for v in row) for row in cursor]


def assert_same(session: Any, query: str, batches: int) -> None:
    """Compares the rows, which came in so many batches at least."""
    found = list(row_batches(session, query))
    rows = [row for columns in found for row in zip(*(c.to_pylist() for c in columns), strict=True)]
    assert rows == one_by_one(session, query)
    assert len(found) >= batches


def fill(session: Any, count: int) -> None:
    rows_of(session, "CREATE TABLE t (id int PRIMARY KEY, a mediumblob, b mediumtext, c int) CHARSET utf8mb4")
    rows_of(session, "INSERT INTO t VALUES (0, 'é', '', 7)")
    for there in (1 << n for n in range(count.bit_length())):
        rows_of(session, f"INSERT INTO t SELECT id + {there}, a, CONCAT(id, ' z'), NULLIF(id % 3, 0) FROM t")


def test_values_of_all_lengths(session: Any) -> None:
    fill(session, 0)
    drawn = random.Random(7)
    cells = ("NULL", *(f"LEFT(REPEAT('ab', 35000), {length})" for length in LENGTHS))
    rows = (f"({n}, {drawn.choice(cells)}, {drawn.choice(cells)}, NULL)" for n in range(2, 600))
    rows_of(session, f"INSERT INTO t VALUES {', '.join(rows)}")
    assert_same(session, "SELECT * FROM t ORDER BY id", batches=2)


def test_many_rows_and_none(session: Any) -> None:
    fill(session, MANY)
    assert_same(session, "SELECT * FROM t ORDER BY id", batches=2)
    assert_same(session, "SELECT * FROM t WHERE id < 0", batches=0)


def test_rows_of_several_packets(spare_database: Database) -> None:
    """Also one that fills its packets exactly, behind which an empty one comes."""
    head = 1 + 2 + 4  # NULL, '1', and the length of what follows
    sizes = (LARGEST - head - 1, LARGEST - head, LARGEST - head + 1, 2 * LARGEST - head - 5, 9 << 20)
    parts = [f"SELECT NULL, {n}, REPEAT('x', {size})" for n, size in enumerate(sizes)]
    query = " UNION ALL ".join(["SELECT NULL, 9, 'y'", *parts, "SELECT 'last', NULL, ''"])
    with (
        max_allowed_packet(spare_database, 64 << 20),
        open_session(settings(spare_database), "source") as session,
    ):
        assert_same(session, query, batches=6)


@pytest.mark.parametrize("first", [100, MANY + MANY // 2])
def test_an_error_behind_the_first_rows(session: Any, first: int) -> None:
    """Also where all of it is received at once."""
    fill(session, MANY if first > MANY else first)
    late = f"SELECT id, IF(id < {first}, 1, (SELECT id FROM t AS o WHERE o.id < t.id)) FROM t ORDER BY id"
    batches = row_batches(session, late)
    assert len(next(batches)[0]) >= min(first, 10_000)
    with pytest.raises(pymysql.err.OperationalError, match="more than 1 row"):
        list(batches)
    assert rows_of(session, "SELECT 1") == [("1",)]


def test_a_session_whose_rows_are_left_unread_is_closed(session: Any) -> None:
    fill(session, MANY)
    batches = row_batches(session, "SELECT * FROM t")
    assert isinstance(batches, Generator)
    next(batches)
    batches.close()
    assert not session.open


def test_a_lost_connection(session: Any, old_binlog: Database) -> None:
    fill(session, MANY)
    batches = row_batches(session, "SELECT a.*, b.* FROM t AS a, t AS b")
    next(batches)
    old_binlog.execute(f"KILL {session.thread_id()}")
    with pytest.raises(pymysql.err.OperationalError, match=r"lost the connection|interrupted|killed"):
        list(batches)
