"""DDL on a captured table, seen at its place in the log."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.log.relations import Relations
from migrator.errors import SchemaError, SourceError
from migrator.model.event import LogProgress, LogRecord, RowChange, SchemaChange, TransactionPart
from tests.fix_postgres_commits import HangingCommit, let_go, no_standby_answers
from tests.fix_postgres_source import changes, log_reader, parts, prepared, read_to, read_until, source_of
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


def table(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, a int, v varchar(10))", "ALTER TABLE t REPLICA IDENTITY FULL"
    )


def story(records: list[LogRecord]) -> list[tuple[str, ...] | RowChange]:
    """Schema changes as column names, row changes as they are."""
    told: list[tuple[str, ...] | RowChange] = []
    for record in records:
        if isinstance(record, SchemaChange):
            told.append(record.schema.names())
        elif isinstance(record, TransactionPart):
            told += record.changes
    return told


def test_an_added_column_is_an_event_in_its_place(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute(
        "INSERT INTO t VALUES (1, 1, 'x')",
        "ALTER TABLE t ADD n numeric(10,2) NOT NULL DEFAULT 5",
        "UPDATE t SET v = 'y'",
    )
    catalog = PostgresCatalog(source)
    with log_reader(source, schemas) as reader:
        records = read_to(reader, catalog.position())
    insert, names, update = story(records)
    assert isinstance(insert, RowChange)
    assert isinstance(update, RowChange)
    assert insert.after == ("1", "1", "x")
    assert names == ("k", "a", "v", "n")
    assert (update.before, update.after) == (("1", "1", "x", "5.00"), ("1", "1", "y", "5.00"))
    (changed,) = [record.schema for record in records if isinstance(record, SchemaChange)]
    assert [changed] == catalog.tables(["t"])  # type, NOT NULL and all


def test_a_restart_behind_an_added_column_has_the_schema_of_that_place(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    prepared(source, "t")
    old_pg.execute(
        "INSERT INTO t VALUES (1, 1, 'x')", "ALTER TABLE t ADD n int", "INSERT INTO t VALUES (2, 2, 'y', 3)"
    )
    later = PostgresCatalog(source).tables(["t"])
    with log_reader(source, later) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    shorter, first, longer, second = story(records)
    assert (shorter, longer) == (("k", "a", "v"), ("k", "a", "v", "n"))
    assert isinstance(first, RowChange)
    assert isinstance(second, RowChange)
    assert (first.after, second.after) == (("1", "1", "x"), ("2", "2", "y", "3"))


def test_a_schema_change_inside_a_transaction_splits_it_at_its_place(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    connection = old_pg.connect(autocommit=False)
    connection.execute("INSERT INTO t VALUES (1, 1, 'x')")
    connection.execute("ALTER TABLE t ADD n int")
    connection.execute("INSERT INTO t VALUES (2, 2, 'y', 3)")
    connection.commit()
    connection.close()
    with log_reader(source, schemas) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    kinds = [type(record) for record in records if not isinstance(record, LogProgress)]
    assert kinds == [TransactionPart, SchemaChange, TransactionPart]
    assert [(part.first_index, part.last) for part in parts(records)] == [(0, False), (1, True)]


def test_a_longer_varchar_goes_on(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute("ALTER TABLE t ALTER v TYPE varchar(20)", "INSERT INTO t VALUES (1, 1, 'longer than ten')")
    with log_reader(source, schemas) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    (changed,) = [record.schema for record in records if isinstance(record, SchemaChange)]
    assert changed.columns[2].source_type == "character varying(20)"
    assert [change.after for change in changes(records)] == [("1", "1", "longer than ten")]


@pytest.mark.parametrize(
    ("ddl", "insert", "says"),
    [
        ("ALTER TABLE t DROP COLUMN v", "(2, 2)", "column 'v' was dropped"),
        ("ALTER TABLE t DROP COLUMN a", "(2, 'x')", "column 'a' was dropped or renamed"),
        (
            "ALTER TABLE t RENAME a TO b",
            "(2, 2, 'x')",
            "column 'a' was dropped or renamed (the log has 'b' there)",
        ),
        (
            "ALTER TABLE t ALTER a TYPE bigint",
            "(2, 2, 'x')",
            "column 'a' changed its type from integer to bigint",
        ),
        ("ALTER TABLE t ALTER v TYPE varchar(3)", "(2, 2, 'x')", "column 'v' changed its type"),
        (
            "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k, v)",
            "(2, 2, 'x')",
            "its key changed from (k) to (k, v)",
        ),
        (
            "ALTER TABLE t DROP COLUMN v, ADD v varchar(10)",
            "(2, 2, 'x')",
            "column 'v' was dropped and added again",
        ),
    ],
)
def test_other_changes_stop_the_table_with_a_name_and_a_place(
    old_pg: Database, ddl: str, insert: str, says: str
) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 1, 'x')")
        read_until(reader, lambda records: len(changes(records)) == 1)
        old_pg.execute(ddl, f"INSERT INTO t VALUES {insert or (2, 2, 'x')}")
        with pytest.raises(SchemaError) as caught:
            read_until(reader, lambda _: False)
    assert says in caught.value.cause
    assert caught.value.where.startswith("public.t at position ")


@pytest.mark.slow
def test_another_name_stops_the_table_whether_the_log_or_a_look_beside_it_tells_first(
    old_pg: Database,
) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 1, 'x')")
        read_until(reader, lambda records: len(changes(records)) == 1)
        old_pg.execute("ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (2, 2, 'x')")
        with pytest.raises(SchemaError) as caught:
            read_until(reader, lambda _: False)
    assert "public.u" in caught.value.cause
    assert caught.value.where.startswith("public.t")


@pytest.mark.parametrize(
    "ddl", ["DROP TABLE t", "ALTER TABLE t RENAME TO u", "ALTER TABLE t SET SCHEMA aside"]
)
def test_a_table_that_is_gone_stops_though_nothing_is_written_to_it(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, ddl: str
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.2)
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._BACK_S", 1.0)
    table(old_pg)
    old_pg.execute("CREATE SCHEMA aside")
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 1, 'x')")
        read_until(reader, lambda records: len(changes(records)) == 1)
        old_pg.execute(ddl)
        with pytest.raises(SourceError, match=r"public\.t") as caught:
            read_until(reader, lambda _: False)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("ddl", "says"),
    [
        (
            "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (k, a)",
            "its key changed from (k) to (k, a)",
        ),
        ("ALTER TABLE t DROP COLUMN v", "column 'v' was dropped"),
    ],
)
def test_ddl_that_is_in_the_log_before_the_catalog_shows_it_stops_once_it_does(
    postgres: PostgresServer, old_pg: Database, ddl: str, says: str
) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with no_standby_answers(postgres.admin, old_pg), log_reader(source, schemas) as reader:
        hanging = HangingCommit(old_pg, ddl, "INSERT INTO t (k, a) VALUES (2, 2)")
        read_until(reader, lambda records: len(changes(records)) == 1)
        let_go(postgres.admin)
        hanging.finish()
        with pytest.raises(SchemaError) as caught:
            read_until(reader, lambda _: False)
    assert says in caught.value.cause


PARTITIONED = (
    "CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY RANGE (k)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)",
    "ALTER TABLE p REPLICA IDENTITY FULL",
    "ALTER TABLE p1 REPLICA IDENTITY FULL",
)
ATTACHED = (
    "CREATE TABLE p2 (k int PRIMARY KEY, v text)",
    "INSERT INTO p2 VALUES (150, 'nobody logged me')",
    "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200)",
)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (ATTACHED, "p2 was attached"),
        (("ALTER TABLE p DETACH PARTITION p1",), "p1 was detached or dropped"),
        (("DROP TABLE p1",), "p1 was detached or dropped"),
        (
            (
                "ALTER TABLE p DETACH PARTITION p1",
                "DELETE FROM p1",
                "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100)",
            ),
            "p1 was attached",
        ),
    ],
)
def test_rows_that_come_or_go_with_their_partition_stop_by_name(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...], says: str
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.2)
    old_pg.execute(*PARTITIONED)
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO p VALUES (1, 'x')")
        read_until(reader, lambda records: len(changes(records)) == 1)
        old_pg.execute(*statements)
        with pytest.raises(SchemaError) as caught:
            read_until(reader, lambda _: False)
    assert says in caught.value.cause
    assert caught.value.where == "public.p"


def test_a_partition_attached_while_nobody_read_stops_the_next_start(old_pg: Database) -> None:
    old_pg.execute(*PARTITIONED, *ATTACHED)
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    catalog = PostgresCatalog(source)
    with log_reader(source, schemas) as reader:  # what was attached before the first start is in the dump
        place = catalog.position()
        read_to(reader, place)
        reader.acknowledge(place)
    with log_reader(source, schemas, place) as reader:
        old_pg.execute("INSERT INTO p VALUES (1, 'x')")
        place = catalog.position()
        assert len(changes(read_to(reader, place))) == 1
    old_pg.execute(
        "CREATE TABLE p3 (k int PRIMARY KEY, v text)",
        "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (200) TO (300)",
    )
    with pytest.raises(SchemaError, match="which the log doesn't show") as caught:
        PostgresLogReader(source, schemas).start(place)
    assert "p3 was attached" in caught.value.cause


def test_a_partition_made_as_one_goes_on(old_pg: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.0)
    old_pg.execute(*PARTITIONED)
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    with log_reader(source, schemas) as reader:
        old_pg.execute(
            "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
            "ALTER TABLE p2 REPLICA IDENTITY FULL",
            "INSERT INTO p VALUES (150, 'x')",
            "VACUUM p2",
        )
        records = read_to(reader, PostgresCatalog(source).position())
        reader.read(0.0)
    assert [change.after for change in changes(records)] == [("150", "x")]
    with log_reader(source, schemas, PostgresCatalog(source).position()) as reader:
        reader.read(0.0)


BY_HALF = (
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
    "INSERT INTO p VALUES (150, 'x'), (151, 'y')",
)


@pytest.mark.parametrize("change", ["DELETE FROM p WHERE k = 150", "UPDATE p SET v = 'z' WHERE k = 150"])
def test_a_partition_that_logs_nothing_but_keys_stops_by_name(old_pg: Database, change: str) -> None:
    old_pg.execute(*PARTITIONED, "INSERT INTO p VALUES (1, 'a')")
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    with log_reader(source, schemas) as reader:
        old_pg.execute("UPDATE p SET v = 'b' WHERE k = 1", *BY_HALF)
        records = read_to(reader, PostgresCatalog(source).position())
        assert len(changes(records)) == 3, "inserted rows are whole"
        old_pg.execute(change)
        with pytest.raises(SourceError, match="came without its full before image") as caught:
            read_until(reader, lambda _: False)
    assert "partitions" in caught.value.remedy


def test_one_that_is_whole_before_anything_changes_in_it_goes_on(old_pg: Database) -> None:
    old_pg.execute(*PARTITIONED)
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    with log_reader(source, schemas) as reader:
        old_pg.execute(
            *BY_HALF,
            "ALTER TABLE p2 REPLICA IDENTITY FULL",
            "DELETE FROM p WHERE k = 150",
        )
        found = changes(read_to(reader, PostgresCatalog(source).position()))
    assert [change.before for change in found] == [None, None, ("150", "x")]


def test_by_its_root_alone_its_old_rows_would_lack_columns_without_a_word(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the two above."""
    monkeypatch.setattr(Relations, "_see_partition", lambda *_: None)
    old_pg.execute(*PARTITIONED)
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    with log_reader(source, schemas) as reader:
        old_pg.execute(*BY_HALF, "DELETE FROM p WHERE k = 150")
        found = changes(read_to(reader, PostgresCatalog(source).position()))
    assert found[-1].before == ("150", None)


def test_tables_that_are_not_captured_may_change_as_they_like(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute(
        "CREATE TABLE other (k int)",
        "ALTER TABLE other ADD z int",
        "DROP TABLE other",
        "INSERT INTO t VALUES (1, 1, 'x')",
    )
    with log_reader(source, schemas) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    assert len(changes(records)) == 1
    assert not [record for record in records if isinstance(record, SchemaChange)]
