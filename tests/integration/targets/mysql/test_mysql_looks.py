"""A look for rows that somebody or the server ends is an error that is tried again: no answer is no empty table."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.shared.identities import rows_there
from migrator.adapters.targets.shared.refused import StatementRefused
from tests.integration.target_bench_mysql import settings_of
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration

LIMIT = {"mysql": "SET SESSION max_execution_time = 200", "mariadb": "SET SESSION max_statement_time = 0.2"}


@pytest.fixture(params=["new_maria", "new_mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    found.execute("CREATE TABLE item (id int PRIMARY KEY)", "INSERT INTO item VALUES (1), (2)")
    return found


def looking(database: Database) -> list[tuple[Any, ...]]:
    """Sessions that look for rows now."""
    return database.query(
        "SELECT id FROM information_schema.processlist WHERE info LIKE %s AND id <> CONNECTION_ID()",
        ["(SELECT 0 FROM %"],
    )


def ended_by_somebody(database: Database) -> None:
    await_true(lambda: looking(database) != [], "a look")
    database.execute(f"KILL QUERY {looking(database)[0][0]}")


def while_locked(database: Database, what: Callable[[], object], end: Callable[[Database], None]) -> None:
    """Does something while nobody else may read the table. Raises what it raises."""
    with database.connect() as other, other.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("LOCK TABLES item WRITE")
        done = pool.submit(what)
        try:
            end(database)
            done.result(timeout=30)
        finally:
            cursor.execute("UNLOCK TABLES")


@pytest.mark.parametrize("limited", [False, True])
def test_one_that_is_ended_has_no_answer(database: Database, limited: bool) -> None:
    """Our sessions are pinned to no limit; an administrator may end what they run all the same. The control is the
    answer that comes otherwise."""
    session = Session(settings_of(database))
    there = rows_there(session.rows, {"item": ["id"]}, lambda name: name, lambda name: name)
    try:
        assert there(["item", "item"]) == {"item"}
        session.run("COMMIT")
        if limited:
            session.run(LIMIT["mariadb" if "Maria" in str(database.query("SELECT VERSION()")) else "mysql"])
        with pytest.raises(StatementRefused) as caught:
            while_locked(
                database, lambda: there(["item", "item"]), (lambda _: None) if limited else ended_by_somebody
            )
        assert caught.value.retryable()
    finally:
        session.close()
