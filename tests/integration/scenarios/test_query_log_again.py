"""A query log that a server wrote under an application is done again by a project's clients, under a hazard."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from scenarios.chaos import play
from scenarios.chaos.query_log.recording import read
from scenarios.chaos.stage import Old
from scenarios.database import Connection, Database
from scenarios.rehearsal import sides
from tests.integration.scenarios.test_project_under_hazards import PROJECT, project
from verify.history.result import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ODD = "50% of 'it' \\ $1 %s\n  ü"
ROUNDS = 60


def _server(stack: ExitStack, kind: str, folder: Path, log: Path) -> Database:
    if kind == "postgresql":
        settings = {
            "logging_collector": "on", "log_destination": "csvlog", "log_statement": "all",
            "log_directory": str(log), "log_filename": "log", "log_file_mode": "0644",
        }  # fmt: skip
        postgres = stack.enter_context(EmbeddedPostgres(folder, settings=settings))
        postgres.create_database("old")
        return Database("postgresql", postgres.host, postgres.port, "old", postgres.superuser)
    embedded = EmbeddedMariaDB if kind == "mariadb" else EmbeddedMySQL
    settings = {"general-log": "ON", "general-log-file": str(folder / "general.log"), "log-output": "FILE"}
    server = stack.enter_context(embedded(folder, settings=settings))
    server.create_database("old")
    return Database(
        "mariadb" if kind == "mariadb" else "mysql", server.host, server.port, "old", server.superuser
    )


def _application(database: Database, client: int) -> None:
    """One client: its customers with orders, changed, undone and removed; names of its own, rows that others made."""
    with ExitStack() as stack:
        connection: Connection = database.connect()
        stack.callback(connection.close)
        cursor = connection.cursor()
        if database.kind != "postgresql":
            cursor.execute("SET SESSION sql_mode = DEFAULT")
        for number in range(ROUNDS):
            key = 10_000 + client * 1_000 + number
            cursor.execute(
                "INSERT INTO customer VALUES (%s, %s, %s, 'new', %s)",
                (key, ODD, f"{key}@example.org" if number % 3 else None, "2001-02-28"),
            )
            cursor.execute(
                "INSERT INTO orders (order_id, customer_id, note) VALUES (%s, %s, %s)", (key, key, ODD)
            )
            cursor.execute("INSERT INTO order_line VALUES (%s, 1, 'ball', 2, 1.50)", (key,))
            connection.commit()
            cursor.execute(
                "UPDATE customer SET state = 'active', name = %s WHERE customer_id = %s", ("%", key)
            )
            connection.rollback() if number % 5 == 4 else connection.commit()
            if number % 4 == 3:
                cursor.execute("DELETE FROM order_line WHERE order_id = %s", (key,))
                cursor.execute("DELETE FROM orders WHERE order_id = %s", (key,))
                connection.commit()
            cursor.execute(
                "UPDATE order_line SET quantity = quantity + 1 WHERE order_id >= 10000 AND quantity < 5"
            )
            connection.commit()


def _captured(kind: str, folder: Path, kept: Path) -> Path:
    """The log of two clients that wrote side by side."""
    (folder / "log").mkdir()
    (folder / "log").chmod(0o777)
    with ExitStack() as stack:
        database = _server(stack, kind, folder / "server", folder / "log")
        sides.loaded(database, sides.read(PROJECT / "schema.sql", database), PROJECT / "schema.sql")
        clients = [threading.Thread(target=_application, args=[database, number]) for number in range(2)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    wrote = folder / "log" / "log.csv" if kind == "postgresql" else folder / "server" / "general.log"
    kept.write_bytes(wrote.read_bytes())
    return kept


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_a_log_is_done_again_under_a_hazard(tmp_path: Path, kind: str) -> None:
    with scratch_directory("migrator-log-") as folder:
        log = _captured(kind, folder, tmp_path / "captured.log")
    recording = read(log, kind, "old")
    undone = Counter(one.undone for one in recording.transactions)
    assert undone[True] == 2 * (ROUNDS // 5)
    order = play.Order(
        project(tmp_path, kind),
        Old(str(PROJECT / "schema.sql"), number=40),
        ("kill_after_target_commit",),
        changes=100_000,
        rate_per_s=200,
        query_log=log,
        out=tmp_path / "out",
    )
    found = play.run(order)
    assert found.outcome is Outcome.HOLDS, (found.reason, found.error, found.checks)
    assert (
        found.counts["begun again"]
        == found.counts["transactions of the query log"]
        == len(recording.transactions)
    )
    assert found.counts["refused"] <= 4, "deadlocks at most: what each transaction relied on was there"
    inserted = next(check for check in found.checks if check.code == "D3").checked
    assert inserted >= 2 * ROUNDS * 4
