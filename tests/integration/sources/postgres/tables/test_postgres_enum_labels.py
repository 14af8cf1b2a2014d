"""ALTER TYPE ... RENAME VALUE changes every row that has the label, and none of it is in the log: a named stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.errors import ConnectionFailed, SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from scenarios.bench.orders.old_schema import create
from tests.fix_postgres_source import changes, log_reader, prepared, read_to, read_until, source_of
from tests.integration import run_project
from tests.integration.capturing import capturing
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration

ENUMS = (
    "CREATE TYPE mood AS ENUM ('low', 'high')",
    "CREATE TYPE other AS ENUM ('low', 'high')",
    "CREATE DOMAIN moods AS mood[]",
    "CREATE TYPE pair AS (m mood, n int)",
    "CREATE TYPE span AS RANGE (SUBTYPE = mood)",
)


@pytest.fixture(autouse=True)
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.0)


def made(database: Database, column: str) -> None:
    database.execute(
        *ENUMS,
        f"CREATE TABLE t (k int PRIMARY KEY, v {column})",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "CREATE TABLE u (k int PRIMARY KEY, v other)",
    )


@pytest.mark.parametrize("column", ["mood", "mood[]", "moods", "pair", "span"])
def test_a_renamed_label_stops_by_name_wherever_it_is_within(old_pg: Database, column: str) -> None:
    made(old_pg, column)
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t")) as reader:
        reader.read(0.0)
        old_pg.execute("ALTER TYPE mood RENAME VALUE 'low' TO 'down'")
        with pytest.raises(SchemaError, match=r"'low' of public\.mood was renamed to 'down'") as caught:
            read_until(reader, lambda _: False)
    assert caught.value.where == "public.t"
    assert "migrator dump start --table t" in caught.value.remedy


def test_a_label_renamed_there_and_back_between_two_looks_stops_too(old_pg: Database) -> None:
    """A row that was written meanwhile has the other label in the log."""
    made(old_pg, "mood")
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t")) as reader:
        reader.read(0.0)
        old_pg.execute(
            "ALTER TYPE mood RENAME VALUE 'low' TO 'down'",
            "INSERT INTO t VALUES (1, 'down')",
            "ALTER TYPE mood RENAME VALUE 'down' TO 'low'",
        )
        with pytest.raises(SchemaError, match=r"'low' of public\.mood was renamed, and renamed back"):
            read_until(reader, lambda _: False)


def test_the_way_out_is_another_dump(old_pg: Database) -> None:
    made(old_pg, "mood")
    old_pg.execute("INSERT INTO t VALUES (1, 'low'), (2, 'high')")
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    (table,) = capture.schemas

    def rename(name: str) -> None:
        if name == "log.connected":
            old_pg.execute("ALTER TYPE mood RENAME VALUE 'low' TO 'down'")

    with pytest.raises(SchemaError, match="was renamed"):
        capture.run(lambda: False, rename)
    assert capture.held()[table] != capture.source(table), "nothing of it is in the log"
    capture.requests.update(lambda book: book.start((table,), WHOLE))
    capture.run(lambda: any(dump.done for dump in capture.progress.snapshot().requests))
    capture.run(capture.caught_up())
    assert capture.held()[table] == capture.source(table)


@pytest.mark.parametrize("there_and_back", [False, True])
def test_a_label_renamed_while_nobody_reads_stops_until_rows_are_asked_for(
    old_pg: Database, there_and_back: bool
) -> None:
    made(old_pg, "mood")
    old_pg.execute("INSERT INTO t VALUES (1, 'low'), (2, 'high')", "INSERT INTO u VALUES (1, 'low')")
    capture = capturing(old_pg, ["t", "u"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    old_pg.execute("ALTER TYPE mood RENAME VALUE 'low' TO 'down'", "INSERT INTO t VALUES (3, 'down')")
    if there_and_back:
        old_pg.execute("ALTER TYPE mood RENAME VALUE 'down' TO 'low'")

    for _ in range(2):  # whoever starts it again may not have read why it stopped
        with pytest.raises(SchemaError, match=r"a label in public\.t was renamed") as caught:
            capture.run(lambda: False)
        assert "'low' of public.mood was renamed" in caught.value.cause
    table, other = sorted(capture.schemas)
    capture.requests.update(lambda book: book.start((other,), WHOLE))
    with pytest.raises(SchemaError):  # those are the rows of another table
        capture.run(lambda: False)
    capture.requests.update(lambda book: book.start((table,), WHOLE))
    capture.run(lambda: len([dump for dump in capture.progress.snapshot().requests if dump.done]) == 2)
    capture.run(capture.caught_up())
    assert capture.held()[table] == capture.source(table)


def test_every_table_that_has_the_label_is_named(old_pg: Database) -> None:
    """Each must be asked for: one that isn't named would be found only by another stop."""
    made(old_pg, "mood")
    old_pg.execute("CREATE TABLE w (k int PRIMARY KEY, v mood[])", "ALTER TABLE w REPLICA IDENTITY FULL")
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t", "w")) as reader:
        reader.read(0.0)
        old_pg.execute("ALTER TYPE mood RENAME VALUE 'low' TO 'down'")
        with pytest.raises(SchemaError, match="was renamed") as caught:
            read_until(reader, lambda _: False)
    assert caught.value.where == "public.t, public.w"
    assert caught.value.cause.count("was renamed") == 1
    assert caught.value.remedy.endswith("migrator dump start --table t --table w")


def test_a_label_renamed_while_the_connection_is_lost_stops_too(old_pg: Database) -> None:
    """In the very first run: no checkpoint that it began with has a note."""
    made(old_pg, "mood")
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01))
    reads: list[str] = []

    def lose(name: str) -> None:
        if name != "log.records":
            return
        reads.append(name)
        if len(reads) == 1:
            old_pg.execute("INSERT INTO t VALUES (1, 'low')")  # so that there is a second read
        if len(reads) == 2:
            old_pg.execute("ALTER TYPE mood RENAME VALUE 'low' TO 'down'")
            raise ConnectionFailed("lost before anything looked", retryable=True)

    with pytest.raises(SchemaError, match="was renamed"):
        capture.run(lambda: False, lose)


def test_labels_added_while_nobody_reads_are_nothing_to_stop_for(old_pg: Database) -> None:
    """Nor what an older version's checkpoint doesn't tell."""
    made(old_pg, "mood")
    old_pg.execute("INSERT INTO t VALUES (1, 'low'), (2, 'high')")
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    old_pg.execute("ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'")
    old_pg.execute("INSERT INTO t VALUES (3, 'middle')")
    capture.run(capture.caught_up())
    (table,) = capture.schemas
    assert capture.held()[table] == capture.source(table)
    old_pg.execute("ALTER TYPE mood RENAME VALUE 'middle' TO 'mid'")
    with pytest.raises(SchemaError, match="was renamed"):  # the second run has noted the new one
        capture.run(lambda: False)
    newest = capture.event_log.manifests[max(capture.event_log.manifests)]
    capture.event_log.manifests[newest.number] = replace(
        newest, checkpoint=replace(newest.checkpoint, notes=())
    )
    capture.run(capture.caught_up())


def test_a_label_added_and_written_just_before_the_run_ends_is_noted_by_a_last_look(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has looked since it was added; renamed afterwards, it was never seen under its first name."""
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 1e9)
    made(old_pg, "mood")
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    goals: list[Callable[[], bool]] = []

    def add(name: str) -> None:
        if name == "log.connected":
            old_pg.execute("ALTER TYPE mood ADD VALUE 'top'")
            old_pg.execute("INSERT INTO t VALUES (1, 'top')")
            goals.append(capture.caught_up())

    capture.run(lambda: bool(goals) and goals[0](), add)
    old_pg.execute("ALTER TYPE mood RENAME VALUE 'top' TO 'peak'")
    with pytest.raises(SchemaError, match="was renamed"):
        capture.run(lambda: False)


def test_what_renames_no_label_of_ours_goes_on(old_pg: Database) -> None:
    """New labels, also where others must make room; rewritten tables, the catalog's included; other types."""
    made(old_pg, "mood")
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t")) as reader:
        reader.read(0.0)
        old_pg.execute("INSERT INTO t VALUES (1, 'low'), (2, 'high')", "ALTER TYPE mood ADD VALUE 'top'")
        reader.read(0.0)
        for number in range(40):  # of half the room each time, until the numbers in between are used up
            old_pg.execute(f"ALTER TYPE mood ADD VALUE 'm{number}' BEFORE 'high'")
        of_high = "enumlabel = 'high' AND enumtypid = 'mood'::regtype"
        ((order,),) = old_pg.query(f"SELECT enumsortorder FROM pg_enum WHERE {of_high}")
        assert order > 2, "nobody had to make room"
        reader.read(0.0)
        old_pg.execute(
            "VACUUM FULL pg_enum",
            "VACUUM FREEZE pg_enum",
            "VACUUM FULL t",
            "CLUSTER t USING t_pkey",
            "ALTER TYPE other RENAME VALUE 'low' TO 'down'",
            "ALTER TYPE mood RENAME TO temper",
            "ALTER TYPE temper RENAME TO mood",
            "INSERT INTO t VALUES (3, 'm7')",
        )
        records = read_to(reader, PostgresCatalog(source).position())
        reader.read(0.0)
    assert [change.after for change in changes(records)][-1] == ("3", "m7")


@pytest.mark.slow
@pytest.mark.spark
def test_the_way_out_for_a_user(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path
) -> None:
    create(scenario_database(old_pg), 50)
    old_pg.execute(
        "CREATE TYPE channel AS ENUM ('web', 'shop', 'phone')",
        "ALTER TABLE orders ALTER source TYPE channel USING source::channel",
    )
    project = run_project.make(tmp_path, old_pg, new_pg)
    project.run_here()
    old_pg.execute("ALTER TYPE channel RENAME VALUE 'shop' TO 'store'")
    for _ in range(2):
        with pytest.raises(SchemaError, match="was renamed") as caught:
            project.run_here()
        assert "migrator dump start --table orders" in caught.value.remedy
    assert project.differences()
    assert project.command("dump", "start", "--table", "orders", "--where", "source = 'store'") == 0
    project.run_here()
    assert project.differences() == []
