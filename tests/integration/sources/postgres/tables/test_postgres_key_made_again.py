"""What keeps a key unique is dropped and made again: two rows had one key meanwhile, and the log doesn't show it."""

from __future__ import annotations

import pytest

from migrator.errors import SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from tests.fix_postgres_source import log_reader, prepared, read_until, source_of
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

TWICE = ("INSERT INTO {0} VALUES (1, 7, 7)", "DELETE FROM {0} WHERE v = 7")
"""Merged by key they change the row of that key, and remove it."""
MADE_AGAIN = {
    "t": ("ALTER TABLE t DROP CONSTRAINT t_pkey", *TWICE, "ALTER TABLE t ADD PRIMARY KEY (k)"),
    "p": ("ALTER TABLE p DROP CONSTRAINT p_pkey", *TWICE, "ALTER TABLE p ADD PRIMARY KEY (k)"),
}
UNIQUE_THROUGHOUT = (
    "REINDEX TABLE CONCURRENTLY t",
    "REINDEX TABLE t",
    "VACUUM FULL t",
    "TRUNCATE t",
    "ALTER TABLE t DROP CONSTRAINT t_x_key; ALTER TABLE t ADD UNIQUE (x)",
    "CREATE UNIQUE INDEX again ON t (k)",
    "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY USING INDEX again",
    "CREATE UNIQUE INDEX second ON u (k)",
    "DROP INDEX u_k",
    "CREATE UNIQUE INDEX u_k ON u (k)",
    "DROP INDEX second",
    "REINDEX INDEX CONCURRENTLY u_k",
    "ALTER TABLE u ADD PRIMARY KEY USING INDEX u_k",
    "ALTER TABLE w ALTER k TYPE varchar(20)",
)
TABLES = (
    "CREATE TABLE t (k int PRIMARY KEY, v int, x int UNIQUE)",
    "CREATE TABLE u (k int NOT NULL, v int, x int)",
    "CREATE UNIQUE INDEX u_k ON u (k)",
    "CREATE TABLE p (k int PRIMARY KEY, v int, x int) PARTITION BY LIST (k)",
    "CREATE TABLE p1 PARTITION OF p DEFAULT",
    "CREATE TABLE w (k varchar(10) PRIMARY KEY, v int, x int)",
    *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("t", "u", "p", "p1", "w")),
    *(f"INSERT INTO {name} VALUES ('1', 1, 1), ('2', 2, 2)" for name in "tupw"),
)


def dumped(database: Database, *tables: str) -> Capturing:
    """The tables, dumped; nobody reads any more."""
    database.execute(*TABLES)
    capture = capturing(database, list(tables), CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    return capture


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_one_made_again_while_nobody_read_stops_until_rows_are_asked_for(old_pg: Database, name: str) -> None:
    captured = dumped(old_pg, name)
    (table,) = captured.schemas
    old_pg.execute(*(one.format(name) for one in MADE_AGAIN[name]))
    for _ in range(2):
        with pytest.raises(SchemaError) as caught:
            captured.run(captured.caught_up())
        assert "two rows may have had one key" in caught.value.cause
        assert f"migrator dump start --table {name}" in caught.value.remedy
    captured.requests.update(lambda book: book.start((table,), WHOLE))
    captured.run(lambda: any(dump.done for dump in captured.progress.snapshot().requests))
    assert captured.held()[table] == captured.source(table)


def test_without_that_look_the_row_is_lost(old_pg: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(
        "migrator.adapters.sources.postgres.log.unlogged_changes.found_keepers", lambda query, keys: {}
    )
    captured = dumped(old_pg, "t")
    (table,) = captured.schemas
    old_pg.execute(*(one.format("t") for one in MADE_AGAIN["t"]))
    captured.run(captured.caught_up())
    assert set(captured.source(table)) - set(captured.held()[table]) == {(1,)}


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_one_made_again_beside_the_reader_stops_by_the_next_look(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.0)
    old_pg.execute(*TABLES)
    source = source_of(old_pg)
    with log_reader(source, prepared(source, name)) as reader:
        reader.read(0.0)
        old_pg.execute(*(one.format(name) for one in MADE_AGAIN[name]))
        with pytest.raises(SchemaError, match="changed in a way that the log doesn't show"):
            read_until(reader, lambda _: False)


def test_keys_that_stay_unique_go_on(old_pg: Database) -> None:
    captured = dumped(old_pg, "t", "u", "w")
    for number, statement in enumerate(UNIQUE_THROUGHOUT):
        rows = (f"INSERT INTO {name} VALUES ('{number + 10}', 1, {number + 10})" for name in "tuw")
        old_pg.execute(*statement.split("; "), *rows)
        captured.run(captured.caught_up())
    for table in captured.schemas:
        assert captured.held()[table] == captured.source(table)
