"""The demo's parts on real servers: both old schemas, writers, new schema, mapping, and the oracle that judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from alembic import command
from alembic.config import Config
from psycopg import sql
from sqlalchemy import URL, create_engine

from migrator.errors import ConnectionFailed, VerifyError
from scenarios.database import Database
from scenarios.flights import old_schema, oracle
from scenarios.flights.dataset import TABLES
from scenarios.flights.writers import FLIGHT_KEY, FlightWriters, hot_keys
from scenarios.workload import Session
from tests import servers
from transforms import load_mapping
from transforms.testing import run

pytestmark = pytest.mark.integration

PROJECT = Path(oracle.__file__).parent
EVERY = 60
DEADLINE_S = 60.0


def place(server: servers.Database) -> Database:
    """The scenarios' description of a test server's database."""
    kind = cast(Any, server.kind)
    return Database(kind, server.host, server.port, server.database, server.user, server.password)


@pytest.fixture(params=["old_pg", "old_maria"])
def old(request: pytest.FixtureRequest) -> Database:
    """The old database with some of its rows, on each engine."""
    database = place(request.getfixturevalue(request.param))
    old_schema.create(database)
    old_schema.load(database, every=EVERY)
    return database


@pytest.fixture
def new(new_pg: servers.Database) -> Database:
    """The new database at its last revision, empty."""
    database = place(new_pg)
    migrate(database, "head")
    return database


def migrate(database: Database, revision: str) -> None:
    """Run the demo's revisions up, or down to ``base``."""
    url = URL.create(
        "postgresql+psycopg",
        username=database.user,
        password=database.password or None,
        host=database.host,
        port=database.port,
        database=database.database,
    )
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "alembic"))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        (command.downgrade if revision == "base" else command.upgrade)(config, revision)
    engine.dispose()


def fill(database: Database, table: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """COPY rows into a new table, past none of its constraints."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with database.postgres() as session:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
        with session.cursor().copy(statement) as copy:
            for row in rows:
                copy.write_row(row)


def fill_from_oracle(old: Database, new: Database) -> None:
    """What the oracle expects, without the generated columns."""
    for table, (columns, rows) in oracle.expected_rows(old, new).items():
        kept = [i for i, name in enumerate(columns) if (table, name) not in GENERATED]
        fill(new, table, [columns[i] for i in kept], [tuple(row[i] for i in kept) for row in rows])


GENERATED = {
    ("aircraft", "label"),
    ("departure", "on_time"),
    ("delay", "severity"),
    ("weather_observation", "is_freezing"),
}


@contextmanager
def session(database: Database) -> Iterator[Session]:
    """A session whose changes are committed at the end."""
    connection = database.connect()
    try:
        yield Session(connection, cast(Any, None))
        connection.commit()
    finally:
        connection.close()


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)  # between two looks at the condition


@pytest.mark.slow
def test_both_engines_hold_the_same(
    old_pg: servers.Database, old_maria: servers.Database, new_pg: servers.Database
) -> None:
    expected = []
    for database in (place(old_pg), place(old_maria)):
        old_schema.create(database)
        counts = old_schema.load(database, every=EVERY)
        assert counts["flights"] == -(-336_776 // EVERY)
        expected.append(oracle.expected_rows(database, place(new_pg)))
    assert expected[0] == expected[1]
    assert all(rows for _, rows in expected[0].values())


def test_before_images_are_complete(old_pg: servers.Database) -> None:
    old_schema.create(place(old_pg))
    kinds = old_pg.query(
        "SELECT DISTINCT relreplident::text FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    assert kinds == [("f",)]


@pytest.mark.slow
def test_the_oracle_sees_every_kind_of_difference(old: Database, new: Database) -> None:
    missing = oracle.differences(old, new)
    assert {difference.table for difference in missing} == set(oracle.targets())
    assert {difference.side for difference in missing} == {"missing"}
    fill_from_oracle(old, new)
    assert oracle.differences(old, new) == []
    with session(new) as changes:
        changes.change("UPDATE flight SET tail_number = NULL WHERE tail_number = 'N14228'")
        changes.change(
            "DELETE FROM cancellation WHERE flight_id = (SELECT max(flight_id::text)::uuid FROM cancellation)"
        )
    with session(old) as changes:
        changes.change("UPDATE airports SET alt = alt + 1 WHERE faa = 'JFK'")
    found = [(difference.table, difference.side) for difference in oracle.differences(old, new)]
    assert found.count(("place", "missing")) == found.count(("place", "extra")) == 1
    assert found.count(("cancellation", "missing")) == 1
    assert found.count(("flight", "missing")) == found.count(("flight", "extra")) > 0


def test_an_empty_old_database_is_no_agreement(old_pg: servers.Database, new: Database) -> None:
    old_schema.create(place(old_pg))
    with pytest.raises(VerifyError, match="no flights"):
        oracle.differences(place(old_pg), new)


def test_the_revisions_can_be_undone(new_pg: servers.Database) -> None:
    migrate(place(new_pg), "head")
    migrate(place(new_pg), "base")
    tables = new_pg.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert tables == [("alembic_version",)]


@pytest.mark.slow
def test_writers_do_everything_they_can(old: Database, new: Database) -> None:
    writers = FlightWriters(old, seed=11, rate_per_s=None, threads=3, limit_row_changes=6000)
    writers.start()
    assert writers.wait(DEADLINE_S)
    report = writers.stop()
    assert report.commits > 1000
    assert report.rollbacks > 0
    assert report.unknown == 0
    assert set(report.by_action()) == {action.name for action in writers._actions} - {"change mind"}
    fill_from_oracle(old, new)  # whatever they wrote, the new schema's constraints hold
    assert oracle.differences(old, new) == []


def test_hot_pairs_rise_together_and_writers_survive_lost_connections(old: Database) -> None:
    before = hot_values(old)
    writers = FlightWriters(old, seed=12, rate_per_s=None, threads=3, hot_percent=100)
    writers.start()
    wait(lambda: writers.report().commits > 50)
    cut_all_connections(old)
    lost = writers.report().commits
    wait(lambda: writers.report().commits > lost + 50)
    report = writers.stop()
    after = hot_values(old)
    assert report.failures + report.unknown > 0
    rises = [new - old_value for old_value, new in zip(before, after, strict=True)]
    assert rises[::2] == rises[1::2]
    assert 2 * report.commits <= sum(rises) <= 2 * (report.commits + report.unknown)


def hot_values(database: Database) -> list[int]:
    """``air_time`` of the hot rows."""
    where = " AND ".join(f"{name} = %s" for name in FLIGHT_KEY)
    with session(database) as reader:
        keys = hot_keys(reader)
        assert len(keys) >= 2
        return [reader.rows(f"SELECT air_time FROM flights WHERE {where}", *key)[0][0] for key in keys]


def cut_all_connections(database: Database) -> None:
    """Ends every other session of the database, as a failing network would."""
    with session(database) as judge:
        if database.kind == "postgresql":
            judge.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> pg_backend_pid()",
                database.database,
            )
            return
        sessions = judge.rows(
            "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> CONNECTION_ID()",
            database.database,
        )
        for (number,) in sessions:
            judge.change(f"KILL CONNECTION {number}")


def test_a_server_that_is_not_there_is_named() -> None:
    nowhere = Database("mariadb", "127.0.0.1", 1, "old", "root", "secret")
    with pytest.raises(ConnectionFailed) as caught:
        nowhere.connect()
    assert "127.0.0.1:1/old as root" in caught.value.where
    assert "secret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.spark
def test_the_mapping_makes_what_the_oracle_says(old: Database, new: Database) -> None:
    writers = FlightWriters(old, seed=13, rate_per_s=None, threads=2, limit_row_changes=3000)
    writers.start()
    assert writers.wait(DEADLINE_S)
    assert writers.stop().commits > 500
    mapping = load_mapping(PROJECT / "mapping.py")
    tables = {name: read(old, name) for name in TABLES}
    for name in oracle.targets():
        made = run(mapping, name, **{source: tables[source] for source in mapping[name].sources})
        columns = list(made[0])
        fill(new, name, columns, [tuple(row[column] for column in columns) for row in made])
    assert oracle.differences(old, new) == []


def read(database: Database, table: str) -> pa.Table:
    """All rows of an old table, columns in its own order."""
    connection = database.connect()
    try:
        cursor = cast(Any, connection.cursor())
        cursor.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        columns = list(zip(*cursor.fetchall(), strict=True))
    finally:
        connection.close()
    return pa.table({name: pa.array(values) for name, values in zip(names, columns, strict=True)})
