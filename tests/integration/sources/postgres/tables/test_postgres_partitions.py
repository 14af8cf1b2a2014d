"""What is done to a partition without a trace in the log stops by name, also when it was done while nobody read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.config import project as configuration
from migrator.errors import SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE, Scope
from migrator.model.table import TableId
from scenarios.bench.orders.old_schema import create
from tests.fix_postgres_source import log_reader, prepared, read_to, read_until, source_of
from tests.integration import run_project
from tests.integration.capturing import Capturing, Killed, capturing
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.ddl.altered_shop import running, until_applied
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration

LIMITS = CaptureLimits(linger_s=0.01)
EMPTIED = r"a partition of public\.p was emptied or rewritten"
CHANGED = r"the partitions of public\.p changed"
P = TableId("public", "p")
REFILL = "INSERT INTO p SELECT n, 'again' FROM generate_series(0, 99) n"


@pytest.fixture(autouse=True)
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.0)


def never_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 1e9)


@pytest.fixture
def parted(old_pg: Database) -> Database:
    """p1 and p2 have rows, p3 none; p4 is partitioned itself."""
    old_pg.execute(
        "CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
        "CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300)",
        "CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (300) TO (400) PARTITION BY RANGE (k)",
        "CREATE TABLE p41 PARTITION OF p4 FOR VALUES FROM (300) TO (400)",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("p", "p1", "p2", "p3", "p4", "p41")),
        "INSERT INTO p SELECT n, 'old' FROM generate_series(0, 199) n",
        "INSERT INTO p SELECT n, 'old' FROM generate_series(300, 399) n",
    )
    return old_pg


def together(database: Database, *statements: str) -> None:
    """In one transaction."""
    with database.connect(autocommit=False) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


EMPTYING = [
    (("TRUNCATE p1",), "p1"),
    (("TRUNCATE p1, p2",), "p1, p2"),
    (("TRUNCATE p4",), "p41"),
    (("TRUNCATE p1", REFILL, "ANALYZE p1"), "p1"),
    (("TRUNCATE p1", REFILL, "VACUUM FULL p1"), "p1"),
    (("TRUNCATE p", REFILL, "TRUNCATE p1"), "p1"),
    (("INSERT INTO p VALUES (200, 'x')", "TRUNCATE p3"), "p3"),
    (("VACUUM FULL p3",), "p3"),  # it had no row before that could tell
    (  # the log gives the number of the whole transaction only
        ("DO $$ BEGIN BEGIN TRUNCATE p; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$",),
        "p1, p2, p3, p41",
    ),
]


NOTICED_AT_A_START = ("p1, p2", "p41", "p3", "p1, p2, p3, p41")
"""Those that ``make test`` has a start notice too: the look is the same one."""


@pytest.mark.parametrize(("statements", "names"), EMPTYING)
def test_a_partition_emptied_alone_stops_by_name(
    parted: Database, statements: tuple[str, ...], names: str
) -> None:
    source = source_of(parted)
    with log_reader(source, prepared(source, "p")) as reader:
        reader.read(0.0)
        parted.execute(*statements)
        with pytest.raises(SchemaError, match=EMPTIED) as caught:
            read_until(reader, lambda _: False)
    assert caught.value.where == "public.p"
    assert caught.value.cause.replace("public.", "").startswith(f"{names}: ")
    assert "migrator dump start --table p;" in caught.value.remedy
    assert "migrator repair" in caught.value.remedy


@pytest.mark.parametrize(
    ("statements", "names"),
    [
        pytest.param(*each, marks=() if each[1] in NOTICED_AT_A_START else pytest.mark.slow)
        for each in EMPTYING
    ],
)
def test_one_emptied_while_nobody_read_stops_until_rows_are_asked_for(
    parted: Database, monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...], names: str
) -> None:
    never_looks_again(monkeypatch)
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    parted.execute(*statements)
    for _ in range(2):  # whoever starts it again may not have read why it stopped
        with pytest.raises(SchemaError, match=EMPTIED) as caught:
            capture.run(lambda: False)
        assert caught.value.cause.replace("public.", "").startswith(f"{names}: ")
    asked_and_read(capture)
    assert capture.held()[P].items() >= capture.source(P).items()


def asked_and_read(capture: Capturing, scope: Scope = WHOLE) -> None:
    capture.requests.update(lambda book: book.start((P,), scope))
    capture.run(lambda: any(dump.done for dump in capture.progress.snapshot().requests))
    capture.run(capture.caught_up())


HARMLESS = (
    "ANALYZE p",
    "VACUUM p",
    "VACUUM FREEZE p",
    "VACUUM FULL p1",
    "VACUUM (FULL, FREEZE) p1, p2, p41",
    "CLUSTER p1 USING p1_pkey",
    "REINDEX TABLE p",
    "GRANT SELECT ON p1 TO PUBLIC",
    "CREATE TABLE p5 PARTITION OF p FOR VALUES FROM (400) TO (500)",
    "DELETE FROM p WHERE k < 90",
)


@pytest.mark.parametrize("statements", [HARMLESS, ("TRUNCATE p",)], ids=["without a trace", "truncate"])
@pytest.mark.parametrize("reads", [True, False])
def test_what_leaves_rows_as_they_are_goes_on(
    parted: Database, statements: tuple[str, ...], reads: bool
) -> None:
    """So does what the log tells; whether a run reads at that moment or not."""
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    if reads:
        done = False

        def work(name: str) -> None:
            nonlocal done
            if name == "log.records" and not done:
                done = True
                parted.execute(*statements)

        capture.run(lambda: done, work)
    else:
        parted.execute(*statements)
    capture.run(capture.caught_up())
    parted.execute("INSERT INTO p VALUES (205, 'later')")
    capture.run(capture.caught_up())
    assert capture.held()[P] == capture.source(P)


def test_a_truncate_that_is_rolled_back_goes_on(parted: Database) -> None:
    source = source_of(parted)
    with log_reader(source, prepared(source, "p")) as reader:
        reader.read(0.0)
        with parted.connect(autocommit=False) as connection:
            connection.execute("TRUNCATE p1")
            connection.rollback()
        read_to(reader, PostgresCatalog(source).position())
        reader.read(0.0)


def test_a_truncate_of_all_that_the_catalog_shows_before_the_log_goes_on(parted: Database) -> None:
    """The first look is made before the log is read: what it finds waits for the log to come to that place."""
    source = source_of(parted)
    schemas = prepared(source, "p")
    reader = PostgresLogReader(source, schemas)
    start = reader.start(None)
    reader.read(0.0)
    for _ in range(3):
        together(parted, "TRUNCATE p", REFILL)
    reader.start(start)
    read_to(reader, PostgresCatalog(source).position())
    reader.read(0.0)
    parted.execute("TRUNCATE p1")  # the control: it does look
    with pytest.raises(SchemaError, match=EMPTIED):
        read_until(reader, lambda _: False)
    reader.close()


@pytest.mark.slow
def test_a_truncate_of_all_that_was_captured_but_not_looked_at_goes_on(
    parted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run doesn't get it from the log any more; that it was there is noted."""
    never_looks_again(monkeypatch)
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    goals: list[Callable[[], bool]] = []

    def truncate(name: str) -> None:
        if name == "log.records" and not goals:
            together(parted, "TRUNCATE p", REFILL)
            goals.append(capture.caught_up())
        if name == "capture.appended" and goals and goals[0]():
            raise Killed

    with pytest.raises(Killed):
        capture.run(lambda: False, truncate)
    capture.run(capture.caught_up())
    assert capture.held()[P] == capture.source(P)


def test_without_that_note_it_would_stop(parted: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the one above."""
    never_looks_again(monkeypatch)
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    parted.execute("TRUNCATE p")
    capture.run(capture.caught_up())
    renote(capture, lambda noted: {**noted, "tree": [[*row[:3], 1] for row in noted["tree"]], "emptied": []})
    with pytest.raises(SchemaError, match=EMPTIED):
        capture.run(lambda: False)


def renote(capture: Capturing, change: Callable[[dict[str, list[list[object]]]], object]) -> None:
    """The newest checkpoint's note about partitions is another."""
    newest = capture.event_log.manifests[max(capture.event_log.manifests)]
    noted = dict(newest.checkpoint.notes)
    changed = change(json.loads(noted[P])["partitions"])
    notes = tuple({**noted, P: json.dumps({"partitions": changed})}.items()) if changed else ()
    capture.event_log.manifests[newest.number] = replace(
        newest, checkpoint=replace(newest.checkpoint, notes=notes)
    )


def test_an_older_checkpoint_without_a_note_goes_on(parted: Database) -> None:
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    renote(capture, lambda noted: None)
    parted.execute("VACUUM FULL p3", "INSERT INTO p VALUES (201, 'x')")
    capture.run(capture.caught_up())
    assert capture.held()[P] == capture.source(P)
    parted.execute("TRUNCATE p1")
    with pytest.raises(SchemaError, match=EMPTIED):  # it is noted by now
        capture.run(lambda: False)


def test_one_emptied_just_before_the_run_ends_is_found_by_a_last_look(
    parted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may read the log after it."""
    never_looks_again(monkeypatch)
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)

    def emptied() -> bool:
        parted.execute("TRUNCATE p2")
        return True

    with pytest.raises(SchemaError, match=EMPTIED):
        capture.run(emptied)


def test_a_last_look_that_needs_the_log_reads_it(parted: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    never_looks_again(monkeypatch)
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)

    def emptied() -> bool:
        together(parted, "TRUNCATE p", REFILL)
        return True

    capture.run(emptied)
    capture.run(capture.caught_up())
    assert capture.held()[P] == capture.source(P)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (("ALTER TABLE p DETACH PARTITION p1",), "p1 was detached or dropped"),
        (("DROP TABLE p1",), "p1 was detached or dropped"),
        (("DROP TABLE p1", "DROP TABLE p2", "DROP TABLE p3", "DROP TABLE p4"), "p1 was detached or dropped"),
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
def test_rows_gone_with_their_partition_while_nobody_read_stop_the_next_start(
    parted: Database, statements: tuple[str, ...], says: str
) -> None:
    """Until rows are asked for; those that are gone are for the verifier to find."""
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    parted.execute(*statements)
    for _ in range(2):
        with pytest.raises(SchemaError, match=CHANGED) as caught:
            capture.run(lambda: False)
        assert says in caught.value.cause
    asked_and_read(capture)
    assert capture.held()[P].items() >= capture.source(P).items()


def test_rows_that_came_with_their_partition_are_asked_for(parted: Database) -> None:
    """Asked for by their range alone, all is as it should be."""
    capture = capturing(parted, ["p"], LIMITS)
    capture.run(capture.dumped)
    parted.execute(
        "CREATE TABLE p5 (k int PRIMARY KEY, v text)",
        "INSERT INTO p5 VALUES (450, 'nobody logged me')",
        "ALTER TABLE p5 REPLICA IDENTITY FULL",
        "ALTER TABLE p ATTACH PARTITION p5 FOR VALUES FROM (400) TO (500)",
    )
    for _ in range(2):
        with pytest.raises(SchemaError, match=CHANGED) as caught:
            capture.run(lambda: False)
        assert "p5 was attached" in caught.value.cause
    asked_and_read(capture, Scope(predicate="k >= 400"))
    assert capture.held()[P] == capture.source(P)


def test_the_first_partition_of_a_table_that_had_none_is_found(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY RANGE (k)")
    old_pg.execute("ALTER TABLE p REPLICA IDENTITY FULL")
    capture = capturing(old_pg, ["p"], LIMITS)
    capture.run(capture.dumped)
    old_pg.execute(
        "CREATE TABLE p1 (k int PRIMARY KEY, v text)",
        "INSERT INTO p1 VALUES (50, 'nobody logged me')",
        "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100)",
    )
    with pytest.raises(SchemaError, match=CHANGED):
        capture.run(lambda: False)


def test_a_look_waits_for_no_lock(parted: Database) -> None:
    """VACUUM FULL of a partitioned table locks one partition after the other, each for as long as it takes."""
    source = source_of(parted)
    with log_reader(source, prepared(source, "p")) as reader, parted.connect(autocommit=False) as holder:
        reader.read(0.0)
        holder.execute("LOCK TABLE p2 IN ACCESS EXCLUSIVE MODE")
        parted.execute("VACUUM FULL p1", "INSERT INTO p VALUES (201, 'x')")
        read_until(reader, lambda records: len(records) > 2)
        reader.read(0.0)
        holder.rollback()
        reader.read(0.0)
        parted.execute("INSERT INTO p VALUES (202, 'x')")
        read_to(reader, PostgresCatalog(source).position())
        parted.execute("TRUNCATE p1")
        with pytest.raises(SchemaError, match=EMPTIED):
            read_until(reader, lambda _: False)


def parted_orders(old: Database, new: Database, folder: Path) -> Project:
    """A migration of ``orders``, of which two partitions have a hundred rows, in step."""
    create(scenario_database(old), 100)
    old.execute(
        "ALTER TABLE orders RENAME TO orders_1",
        "CREATE TABLE orders (LIKE orders_1 INCLUDING ALL) PARTITION BY RANGE (id)",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "ALTER TABLE orders ATTACH PARTITION orders_1 FOR VALUES FROM (0) TO (1000)",
        "CREATE TABLE orders_2 PARTITION OF orders FOR VALUES FROM (1000) TO (2000)",
        "ALTER TABLE orders_2 REPLICA IDENTITY FULL",
        "INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('id', id + 1000))).* FROM orders_1 o",
    )
    project = run_project.make(folder, old, new)
    project.run_here()
    assert project.differences() == []
    return project


BESIDE_THE_LOG = {
    "gone": [
        "INSERT INTO orders SELECT (jsonb_populate_record(o, '{\"id\": 500}')).* FROM orders o WHERE id = 7",
        "UPDATE orders SET items = items + 1 WHERE id < 20",
        "ALTER TABLE orders DETACH PARTITION orders_1",
        "UPDATE orders SET items = items + 1 WHERE id < 1020",
    ],
    "come": [
        "CREATE TABLE orders_3 (LIKE orders INCLUDING ALL)",
        "ALTER TABLE orders_3 REPLICA IDENTITY FULL",
        "INSERT INTO orders_3 SELECT (jsonb_populate_record(o, jsonb_build_object('id', id + 2000))).*"
        " FROM orders_1 o",
        "ALTER TABLE orders ATTACH PARTITION orders_3 FOR VALUES FROM (2000) TO (4000)",
        "UPDATE orders SET items = items + 1 WHERE id % 1000 < 10",
        "DELETE FROM orders WHERE id = 2009",
    ],
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("what", BESIDE_THE_LOG)
def test_a_run_reads_the_table_again_and_goes_on(
    what: str, stopped: bool, old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows that were inserted and then went with their partition are in the log, and nothing says that they went."""
    project = parted_orders(old_pg, new_pg, tmp_path)
    if stopped:
        old_pg.execute(*BESIDE_THE_LOG[what])
    else:
        with running(project) as migration:
            until_applied(migration, project)
            old_pg.execute(*BESIDE_THE_LOG[what])
            again = "all of its rows are read again"
            await_true(lambda: again in "".join(migration.progress.snapshot().warnings), "it is noticed")
    for _ in range(2):
        project.run_here()
        assert project.differences() == []
        old_pg.execute("UPDATE orders SET items = items + 2 WHERE id % 1000 < 20")
    project.run_here()
    assert project.differences() == []


@pytest.mark.slow
@pytest.mark.spark
def test_the_way_out_for_a_user(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path
) -> None:
    project = parted_orders(old_pg, new_pg, tmp_path)
    old_pg.execute("TRUNCATE orders_1")
    for _ in range(2):
        with pytest.raises(SchemaError, match=r"a partition of public\.orders was emptied") as caught:
            project.run_here()
        assert "migrator dump start --table orders;" in caught.value.remedy
    assert project.command("dump", "start", "--table", "orders", "--where", "id < 1000") == 0
    project.run_here()
    assert len(project.differences()) == 100
    assert project.command("verify") == 1
    statements = tmp_path / "repair.sql"
    assert (
        project.command(
            "repair",
            "--from",
            str(configuration.load(project.config).reports() / "verify.json"),
            "--sql",
            str(statements),
        )
        == 1
    )
    new_pg.execute(statements.read_text())
    assert project.differences() == []
    project.run_here()
    assert project.command("verify") == 0
