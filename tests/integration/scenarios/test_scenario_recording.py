"""The recorders of scenarios on real servers: what they hold is what was written, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import URL

from migrator.errors import VerifyError
from migrator.schema import upgrade_target
from scenarios import database as scenario
from scenarios.recording.clock import RunClock
from scenarios.recording.observers import Observers
from scenarios.recording.pgoutput import decode
from scenarios.recording.recorders import LOG_RECORDERS
from scenarios.recording.source_log import SourceLog, SourceLogRecorder
from scenarios.recording.source_log_mysql import counts
from scenarios.recording.states import final_state
from scenarios.recording.target_commits import TargetCommitRecorder
from scenarios.workloads.base import Columns, Tracked
from tests.integration.run_project import scenario_database
from tests.servers import Database
from verify.history.history import DELETE, PUT, TrackedTable

pytestmark = pytest.mark.integration

ITEM = Tracked(
    TrackedTable("item", total="all"),
    Columns("item", ("id",), "writer", "write_no", "amount"),
    Columns("thing", ("thing_id",), "client", "client_no", "level"),
)
PAIR = Tracked(
    TrackedTable("pair", numeric_key=False),
    Columns("pair", ("a", "b"), "writer", "write_no"),
    Columns("couple", ("a", "b"), "client", "client_no"),
)
TABLES = {
    "item": "id bigint PRIMARY KEY, note varchar(50), amount bigint, writer int, write_no int",
    "pair": "a int, b varchar(10), writer int, write_no int, PRIMARY KEY (a, b)",
}


@pytest.fixture(params=["old_pg", "old_maria", "old_mysql"])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    for name, columns in TABLES.items():
        database.execute(f"CREATE TABLE {name} ({columns})")
        if database.kind == "postgresql":
            database.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    database.execute("INSERT INTO item VALUES (1, 'a', 10, 0, 1), (2, 'b', 20, 0, 2)")
    return database


def recorder(old: Database) -> SourceLogRecorder:
    return LOG_RECORDERS[old.kind](scenario_database(old), [ITEM, PAIR], RunClock.started_now())


def changes(log: SourceLog) -> list[tuple[Any, ...]]:
    """Position, index, table, key, session, number, kind, value of what came after the initial rows."""
    names = ["position", "index", "table", "key", "session", "number", "kind", "value"]
    rows = log.table().select(names).to_pylist()
    return [tuple(row.values()) for row in rows if row["position"]]


def transaction(old: Database, *statements: str, end: str = "commit") -> None:
    connection = old.connect(autocommit=False)
    try:
        for statement in statements:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        getattr(connection, end)()
    finally:
        connection.close()


def test_the_log_holds_every_committed_row_change_in_order(old: Database) -> None:
    recording = recorder(old)
    recording.start()
    transaction(old, "UPDATE item SET amount = 11, writer = 1, write_no = 1 WHERE id = 1")
    transaction(old, "UPDATE item SET amount = 99, writer = 1, write_no = 2 WHERE id = 1", end="rollback")
    transaction(
        old,
        "INSERT INTO item VALUES (3, NULL, -5, 2, 1)",
        "SAVEPOINT s",
        "DELETE FROM item WHERE id = 1",
        "ROLLBACK TO SAVEPOINT s",
        "INSERT INTO pair VALUES (7, 'x', 2, 2)",
        "DELETE FROM item WHERE id = 2",
    )
    transaction(old, "UPDATE item SET id = 30, writer = 2, write_no = 3 WHERE id = 3")
    transaction(old, "UPDATE pair SET b = 'y', writer = 2, write_no = 4")
    recording.stop()
    assert changes(recording.log) == [
        (1, 0, "item", "1", 1, 1, PUT, 11),
        (2, 0, "item", "3", 2, 1, PUT, -5),
        (2, 1, "pair", "7-x", 2, 2, PUT, None),
        (2, 2, "item", "2", 0, 2, DELETE, 20),
        (3, 0, "item", "3", 2, 1, DELETE, -5),
        (3, 0, "item", "30", 2, 3, PUT, -5),
        (4, 0, "pair", "7-x", 2, 2, DELETE, None),
        (4, 0, "pair", "7-y", 2, 4, PUT, None),
    ]
    table = recording.log.table()
    initial = table.filter(pa.compute.equal(table["position"], 0))
    assert initial["key"].to_pylist() == ["1", "2"]
    orders = table["order"].to_pylist()
    assert orders == sorted(orders)
    assert len(set(orders)) == 5
    assert recording.log.last_order == orders[-1]
    assert recording.log.transactions == 4
    final = final_state(scenario_database(old), [ITEM, PAIR], "old")
    assert [tuple(row.values()) for row in final.to_pylist()] == [
        ("item", "1", 1, 1, PUT, 11),
        ("item", "30", 2, 3, PUT, -5),
        ("pair", "7-y", 2, 4, PUT, None),
    ]


def test_truncate_deletes_what_was_there_and_large_transactions_are_one(old: Database) -> None:
    recording = recorder(old)
    recording.start()
    rows = ",".join(f"({n}, 'n', {n}, 1, {n})" for n in range(10, 3010))
    transaction(old, f"INSERT INTO item VALUES {rows}", "DELETE FROM item WHERE id > 12")
    old.execute("TRUNCATE TABLE item")
    old.execute("INSERT INTO item VALUES (1, 'again', 1, 3, 1)")
    recording.stop()
    found = changes(recording.log)
    assert len(found) == 3000 + 2997 + 5 + 1
    assert sorted(row[3] for row in found if row[0] == 2) == ["1", "10", "11", "12", "2"]
    assert all(row[6] == DELETE for row in found if row[0] == 2)
    assert found[-1] == (3, 0, "item", "1", 3, 1, PUT, 1)


def test_what_is_written_while_nobody_reads_is_read_later_and_once(
    old: Database, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue({"postgresql": "postgres"}.get(old.kind, old.kind))
    if server.embedded is None:
        pytest.skip("only an embedded server can be killed")
    recording = recorder(old)
    recording.start()
    for number in range(1, 6):
        old.execute(f"UPDATE item SET write_no = {number}, writer = 1 WHERE id = 1")
    server.embedded.kill()
    server.embedded.start()
    for number in range(6, 11):
        old.execute(f"UPDATE item SET write_no = {number}, writer = 1 WHERE id = 1")
    recording.stop()
    assert [row[5] for row in changes(recording.log)] == list(range(1, 11))


@pytest.mark.parametrize("kind", ["old_maria", "old_mysql"])
def test_prepared_transactions_are_decided_about_when_they_end(
    kind: str, request: pytest.FixtureRequest
) -> None:
    source: Database = request.getfixturevalue(kind)
    source.execute(*(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()))
    recording = recorder(source)
    recording.start()
    for name, number in (("kept", 1), ("dropped", 2)):
        insert = f"INSERT INTO item VALUES ({number}, '', 0, 1, {number})"
        source.execute(f"XA START '{name}'", insert, f"XA END '{name}'", f"XA PREPARE '{name}'")
    source.execute("INSERT INTO item VALUES (9, '', 0, 2, 1)")
    source.execute("XA COMMIT 'kept'")
    source.execute("XA ROLLBACK 'dropped'")
    once = "INSERT INTO item VALUES (7, '', 0, 3, 1)"
    source.execute("XA START 'once'", once, "XA END 'once'", "XA COMMIT 'once' ONE PHASE")
    recording.stop()
    assert [row[3] for row in changes(recording.log)] == ["9", "1", "7"]


def test_a_set_of_gtids_with_gaps_or_tags_is_not_counted() -> None:
    one, other = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
    found = counts(f"{one}:1-57,\n{other}:1")
    assert (found.order, found.text) == (58, f"{one}:1-57,{other}:1-1")
    assert counts("").order == 0
    for text in (f"{one}:1-5:7-9", f"{one}:2-5", f"{one}:tag:1-5"):
        with pytest.raises(VerifyError, match="no such set"):
            counts(text)


@pytest.fixture
def new(new_pg: Database) -> Database:
    url = URL.create(
        "postgresql+psycopg", new_pg.user, new_pg.password, new_pg.host, new_pg.port, new_pg.database
    )
    upgrade_target(url)
    new_pg.execute(
        "CREATE TABLE thing (thing_id bigint PRIMARY KEY, level bigint, client int, client_no int)",
        "CREATE TABLE couple (a int, b text, client int, client_no int, PRIMARY KEY (a, b))",
        "INSERT INTO migrator.ledger (migration, epoch, segment, format) VALUES ('m', 0, 0, 1), ('other', 0, 0, 1)",
    )
    return new_pg


def move(segment: int, order: int, after: str | None, *, done: bool = False, migration: str = "m") -> str:
    dumps = [
        {"table": ["public", "item"], "after": [after] if after else None, "done": done},
        {"table": ["public", "pair"], "after": None, "done": done},
    ]
    # Long enough to be stored out of line, so that an update of the epoch alone doesn't carry it.
    checkpoint = json.dumps({"dumps": dumps, "unconfirmed": [[n * 7919 % 99991] for n in range(5000)]})
    return (
        f"UPDATE migrator.ledger SET segment = {segment}, position_order = {order}, checkpoint = '{checkpoint}'"
        f" WHERE migration = '{migration}'"
    )


def test_every_target_commit_with_its_rows_and_the_ledger_it_moved(new: Database) -> None:
    recording = TargetCommitRecorder(scenario_database(new), "m", [ITEM, PAIR], RunClock.started_now())
    recording.start()
    new.execute("UPDATE migrator.ledger SET epoch = 1 WHERE migration = 'm'")
    transaction(new, "INSERT INTO thing VALUES (1, 10, 0, 1)", move(1, 100, "1"))
    transaction(new, "INSERT INTO thing VALUES (5, 50, 9, 9)", end="rollback")
    new.execute("UPDATE thing SET level = 666 WHERE thing_id = 1")  # rogue
    transaction(
        new, "INSERT INTO thing VALUES (6, 60, 9, 9)", move(8, 800, "1", migration="other")
    )  # rogue too
    new.execute("UPDATE migrator.ledger SET epoch = 2 WHERE migration = 'm'")
    transaction(
        new, "UPDATE thing SET level = 11, client = 1, client_no = 1 WHERE thing_id = 1",
        "INSERT INTO couple VALUES (7, 'x', 2, 2)", "DELETE FROM thing WHERE thing_id = 6",
        move(2, 200, "1", done=True),
    )  # fmt: skip
    new.execute(move(3, 300, "1", done=True))
    recording.stop()
    commits, rows = recording.tables()
    assert [tuple(row.values())[:4] for row in commits.to_pylist()] == [
        (1, 1, 1, 100),
        (2, 2, 2, 200),
        (3, 2, 3, 300),
    ]
    assert [json.loads(text) for text in commits["covered"].to_pylist()] == [
        {"item": "1", "pair": None},
        {"item": True, "pair": True},
        {"item": True, "pair": True},
    ]
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (1, "item", "1", 0, 1, PUT, 10),
        (0, "item", "1", 0, 1, PUT, 666),
        (0, "item", "6", 9, 9, PUT, 60),
        (2, "item", "1", 1, 1, PUT, 11),
        (2, "pair", "7-x", 2, 2, PUT, None),
        (2, "item", "6", 9, 9, DELETE, 60),
    ]
    assert recording.commits == 3


def test_a_target_that_can_not_be_recorded_is_named(new: Database) -> None:
    wrong = scenario.Database("postgresql", new.host, new.port, new.database, "postgres", schema="nowhere")
    with pytest.raises(VerifyError, match=r"can't be recorded.*nowhere"):
        TargetCommitRecorder(wrong, "m", [ITEM], RunClock.started_now()).start()


def test_observers_read_totals_and_rows_with_the_ledger_in_one_snapshot(new: Database) -> None:
    new.execute("INSERT INTO thing SELECT n, 1, 0, n FROM generate_series(1, 10) n")
    observing = Observers(scenario_database(new), "m", [ITEM, PAIR], RunClock.started_now(), seed=1)
    observing.start()
    for order in range(1, 20_000):  # many more than are needed, for observers whose threads rarely get a turn
        # Whoever saw one of the three without the others would see a total or a row that doesn't fit the order.
        transaction(
            new,
            "UPDATE thing SET level = level - 1 WHERE thing_id = 1",
            f"UPDATE thing SET level = level + 1, client_no = {order} WHERE thing_id = 2",
            move(order, order, None),
        )
        if observing.snapshots >= 10:
            break
    observing.stop()
    rows = observing.table().to_pylist()
    totals = [row for row in rows if row["name"] == "total all"]
    assert len({row["snapshot"] for row in rows}) >= 10
    assert {row["value"] for row in totals} == {10}
    marked = [row for row in rows if row["name"] == "row item" and row["key"] == "2" and row["order"]]
    assert marked
    assert all(row["number"] == row["order"] and row["value"] == 1 + row["order"] for row in marked)


def test_an_unknown_message_of_the_log_is_an_error() -> None:
    with pytest.raises(VerifyError, match="kind 'S'"):
        decode(b"S....")


def test_a_source_that_does_not_answer_is_named(old_maria: Database) -> None:
    wrong = scenario.Database("mariadb", "127.0.0.1", 1, old_maria.database, "root")
    with pytest.raises(VerifyError, match="can't reach the source"):
        LOG_RECORDERS["mariadb"](wrong, [ITEM], RunClock.started_now()).start()
