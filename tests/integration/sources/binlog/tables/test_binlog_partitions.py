"""DDL on partitions of a captured table: what takes rows away unseen by the log stops, what keeps them goes on."""

from __future__ import annotations

import pytest

from migrator.errors import SchemaError, SourceError
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def parted(old_binlog: Database) -> Database:
    """A table ``account`` of two partitions, each with a row, and a table of the same columns beside it."""
    old_binlog.execute(
        "CREATE TABLE aside (id int PRIMARY KEY, v varchar(9))",
        "CREATE TABLE account (id int PRIMARY KEY, v varchar(9)) PARTITION BY RANGE (id)"
        " (PARTITION low VALUES LESS THAN (100), PARTITION high VALUES LESS THAN (200))",
        "INSERT INTO account VALUES (1, 'a'), (101, 'b')",
    )
    return old_binlog


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ALTER TABLE account TRUNCATE PARTITION low", SchemaError),
        ("ALTER TABLE account DROP PARTITION low", SchemaError),
        ("ALTER TABLE account EXCHANGE PARTITION low WITH TABLE aside", SchemaError),
    ],
)
def test_rows_that_go_with_their_partition_stop_by_name(
    engine: BinlogEngine, parted: Database, statement: str, error: type[SourceError]
) -> None:
    reader, _ = engine.started(source_of(parted), "account")
    parted.execute(
        "INSERT INTO account VALUES (2, 'seen')", statement, "INSERT INTO account VALUES (3, 'no')"
    )
    read = Read()
    with pytest.raises(error, match="account") as stopped:
        read_until(reader, lambda _: False, read)
    reader.close()
    assert [change.after for change in read.changes()] == [("2", "seen")]
    assert engine.gtid in str(stopped.value)
    assert stopped.value.remedy
    assert (1,) not in parted.query("SELECT id FROM account"), "the statement took a row away"


def test_a_captured_table_that_swaps_rows_with_a_partition_of_another_stops_by_name(
    engine: BinlogEngine, parted: Database
) -> None:
    reader, _ = engine.started(source_of(parted), "aside")
    parted.execute("ALTER TABLE account EXCHANGE PARTITION low WITH TABLE aside")
    with pytest.raises(SourceError, match="EXCHANGE PARTITION"):
        read_until(reader, lambda _: False)
    reader.close()
    assert parted.query("SELECT id FROM aside") == [(1,)], "rows came that no row event tells of"


def test_partitions_that_are_added_or_cut_anew_go_on(engine: BinlogEngine, parted: Database) -> None:
    source = source_of(parted)
    reader, _ = engine.started(source, "account")
    parted.execute(
        "ALTER TABLE account ADD PARTITION (PARTITION more VALUES LESS THAN (300))",
        "ALTER TABLE account REORGANIZE PARTITION low INTO"
        " (PARTITION low1 VALUES LESS THAN (50), PARTITION low2 VALUES LESS THAN (100))",
        "UPDATE account SET id = 201 WHERE id = 1",
    )
    read = read_to(reader, engine.end(source))
    reader.close()
    assert [(change.before, change.after) for change in read.changes()] == [(("1", "a"), ("201", "a"))]
    assert parted.query("SELECT id FROM account ORDER BY id") == [(101,), (201,)]
