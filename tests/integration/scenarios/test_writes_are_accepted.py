"""What a stream draws from a server's own schema is taken by that server, but for few statements that are counted."""

from __future__ import annotations

import pytest

from scenarios.chaos.writes.plain_rows import MOST, plain_rows
from scenarios.chaos.writes.rows_known import Known, key_of, shared_out
from scenarios.chaos.writes.stream import Stream
from scenarios.chaos.writes.weights import Weights
from scenarios.database import Database as ScenarioDatabase
from scenarios.faults.session import SERVER_ERRORS
from scenarios.rehearsal import generated, schema
from tests.integration.run_project import scenario_database
from tests.integration.scenarios.test_rehearsal import MANY_KINDS
from tests.servers import Database

pytestmark = [pytest.mark.integration]

MANY_KINDS_OF_MARIADB = """
CREATE TABLE country (code char(2) PRIMARY KEY, name varchar(40) NOT NULL UNIQUE);
CREATE TABLE person (person_id bigint AUTO_INCREMENT PRIMARY KEY, code char(2) NOT NULL, boss bigint,
    likes enum('red', 'green') NOT NULL, born date NOT NULL, seen datetime(6), score decimal(5,2),
    small tinyint unsigned,
    state varchar(10) NOT NULL CHECK (state IN ('new', 'done')), size double CHECK (size > 0), flags bit(5),
    about json, raw varbinary(20), active tinyint(1) NOT NULL, at time, since year, tags set('a', 'b'),
    lower_name varchar(20) GENERATED ALWAYS AS (lower(state)) STORED,
    FOREIGN KEY (code) REFERENCES country (code), FOREIGN KEY (boss) REFERENCES person (person_id));
CREATE TABLE visit (person_id bigint, code char(2), at time NOT NULL, PRIMARY KEY (person_id, code),
    FOREIGN KEY (person_id) REFERENCES person (person_id), FOREIGN KEY (code) REFERENCES country (code));
"""
TRANSACTIONS = 400
FEW = 0.1


def written(database: ScenarioDatabase, seed: int) -> tuple[list[str], Known, dict[str, str]]:
    """The statements' ends, the rows that the client knows, and what it gave up."""
    tables = schema.tables(database)
    generated.fill(database, tables, 25)
    rows = {name: plain_rows(database, table, MOST) for name, table in tables.items()}
    [known] = shared_out(tables, rows, 1, seed)
    stream, ends = Stream(known, 0, 1, seed, Weights()), list[str]()
    connection = database.connect()
    try:
        for _ in range(TRANSACTIONS):
            transaction = stream.next()
            try:
                for change in transaction.changes:
                    connection.cursor().execute(*change.statement(database.kind))
                if transaction.undone:
                    connection.rollback()
                else:
                    connection.commit()
            except SERVER_ERRORS as error:
                connection.rollback()
                stream.settled(False, str(error))
                ends.append(f"{transaction.name}: {error}")
            else:
                stream.settled(True)
                ends.append("")
    finally:
        connection.close()
    return ends, known, stream.why


def check(database: ScenarioDatabase) -> None:
    ends, known, _ = written(database, 5)
    refused = [end for end in ends if end]
    assert len(refused) < FEW * TRANSACTIONS, refused
    for name, table in known.tables.items():
        there = {key_of(table, row) for row in plain_rows(database, table)}
        shared = {key_of(table, row) for row in known.shared[name]}
        assert len(there) == len(known.own[name]) + len(shared), name
        assert len(known.own[name]) > 5, name


def test_a_postgresql_server_takes_what_is_drawn(old_pg: Database) -> None:
    old_pg.execute(MANY_KINDS)
    check(scenario_database(old_pg))


def test_a_mariadb_server_takes_what_is_drawn(old_maria: Database) -> None:
    old_maria.execute(*MANY_KINDS_OF_MARIADB.strip().rstrip(";").split(";\n"))
    check(scenario_database(old_maria))
