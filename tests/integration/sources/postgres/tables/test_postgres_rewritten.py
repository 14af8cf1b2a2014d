"""Values that change in every row unlogged: a column dropped and added again, ALTER ... USING, inheritance."""

from __future__ import annotations

import pytest

from migrator.errors import SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from tests.fix_postgres_source import log_reader, prepared, read_until, source_of
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database, needs_postgres

pytestmark = pytest.mark.integration

STOPS = {
    "DROP COLUMN v; ALTER TABLE t ADD COLUMN v int": "column 'v' was dropped and added again",
    "ALTER COLUMN v TYPE int USING v + 1": "column 'v' was altered",
    "REPLICA IDENTITY FULL; ALTER TYPE pair ADD ATTRIBUTE c int": "the attributes of type public.pair were changed",
}
GOES_ON = [
    "ALTER TABLE t ADD COLUMN w uuid DEFAULT gen_random_uuid()",
    "ALTER TABLE t ALTER COLUMN v SET DEFAULT 7, ALTER COLUMN v SET NOT NULL",
    "CLUSTER t USING t_pkey",
    "VACUUM FULL t",
    "VACUUM FREEZE t",
    "TRUNCATE t",
    "CREATE INDEX ON t (v)",
    "ALTER TYPE pair RENAME ATTRIBUTE a TO z",
    "ALTER TABLE t RENAME COLUMN x TO y; ALTER TABLE t RENAME COLUMN y TO x",
]


@pytest.fixture
def captured(old_pg: Database) -> Capturing:
    """Three rows, dumped; nobody reads any more."""
    old_pg.execute(
        "CREATE TYPE pair AS (a int, b int)",
        "CREATE TABLE t (k int PRIMARY KEY, v int, x int, p pair[])",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, g, g, ARRAY[ROW(1, 2)::pair] FROM generate_series(1, 3) g",
    )
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    return capture


@pytest.mark.parametrize("change", STOPS)
def test_what_was_done_while_nobody_read_stops_until_rows_are_asked_for(
    old_pg: Database, captured: Capturing, change: str
) -> None:
    old_pg.execute(*f"ALTER TABLE t {change}".split("; "))
    (table,) = captured.schemas
    assert captured.held()[table] != captured.source(table), "nothing of it is in the log"
    for _ in range(2):
        with pytest.raises(SchemaError) as caught:
            captured.run(captured.caught_up())
        assert STOPS[change] in caught.value.cause
        assert "migrator dump start --table t" in caught.value.remedy
    captured.requests.update(lambda book: book.start((table,), WHOLE))
    captured.run(lambda: any(dump.done for dump in captured.progress.snapshot().requests))
    assert captured.held()[table] == captured.source(table)


@pytest.mark.parametrize("change", STOPS)
def test_what_is_done_beside_the_reader_stops_by_the_next_look(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.0)
    old_pg.execute("CREATE TYPE pair AS (a int, b int)", "CREATE TABLE t (k int PRIMARY KEY, v int, p pair)")
    old_pg.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t")) as reader:
        reader.read(0.0)
        old_pg.execute("INSERT INTO t VALUES (1, 1)", *f"ALTER TABLE t {change}".split("; "))
        with pytest.raises(SchemaError, match="changed in a way that the log doesn't show"):
            read_until(reader, lambda _: False)


def test_another_expression_of_a_stored_column_stops_until_rows_are_asked_for(old_pg: Database) -> None:
    needs_postgres(18, "publish_generated_columns")
    old_pg.execute(
        "CREATE TABLE g (k int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED, w int)",
        "ALTER TABLE g REPLICA IDENTITY FULL",
        "INSERT INTO g (k, v) VALUES (1, 1), (2, 2)",
    )
    captured = capturing(old_pg, ["g"], CaptureLimits(linger_s=0.01))
    captured.run(captured.dumped)
    (table,) = captured.schemas
    old_pg.execute("UPDATE g SET v = 5 WHERE k = 1", "ALTER TABLE g ALTER COLUMN v SET NOT NULL")
    captured.run(captured.caught_up())
    assert captured.held()[table] == captured.source(table)
    old_pg.execute("ALTER TABLE g ALTER COLUMN twice SET EXPRESSION AS (v * 3)")
    assert captured.held()[table] != captured.source(table), "nothing of it is in the log"
    with pytest.raises(SchemaError, match="changed in a way that the log doesn't show"):
        captured.run(captured.caught_up())
    captured.requests.update(lambda book: book.start((table,), WHOLE))
    captured.run(lambda: any(dump.done for dump in captured.progress.snapshot().requests))
    assert captured.held()[table] == captured.source(table)


def test_a_table_that_inherits_from_a_captured_one_stops_by_name(
    old_pg: Database, captured: Capturing
) -> None:
    old_pg.execute("CREATE TABLE kid () INHERITS (t)", "INSERT INTO kid VALUES (4, 4, 4)")
    with pytest.raises(SchemaError, match="inherits from it") as caught:
        captured.run(captured.caught_up())
    old_pg.execute(caught.value.remedy.partition(";")[0])
    captured.run(captured.caught_up())
    (table,) = captured.schemas
    assert captured.held()[table] == captured.source(table)


def test_what_leaves_values_as_they_are_goes_on(old_pg: Database, captured: Capturing) -> None:
    for number, statement in enumerate(GOES_ON):
        old_pg.execute(*statement.split("; "), f"INSERT INTO t VALUES ({number + 10}, 1, 1)")
        captured.run(captured.caught_up())
    (table,) = captured.schemas
    assert set(captured.held()[table]) == {(number,) for number in range(15, 19)}
