"""Statements of the mirror wait, and go to the server together with the next that asks it for something."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from migrator.adapters.targets.postgres.refusal import Refusal
from migrator.adapters.targets.postgres.session import Session
from tests.integration.target_bench import settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

ROW = "INSERT INTO waiting VALUES (1)"
COUNT = "SELECT count(*) FROM waiting"


@pytest.fixture
def session(new_pg: Database) -> Iterator[Session]:
    session = Session(settings_of(new_pg))
    session.run("CREATE TEMPORARY TABLE waiting (id bigint)")
    session.run("BEGIN")
    yield session
    session.close()


def test_they_run_before_whatever_is_asked(session: Session) -> None:
    asked: list[Callable[[], object]] = [
        lambda: session.rows("SELECT 1"),
        lambda: session.table("SELECT 1"),
        lambda: list(session.parts("SELECT 1")),
        lambda: session.run("SELECT 1"),
        lambda: session.run("SELECT $1::bigint", [1]),
        lambda: session.changed("SELECT 1"),
        lambda: session.load("waiting", pa.table({"id": [2]})),
    ]
    for ask in asked:
        session.run("TRUNCATE waiting")
        session.later(ROW)
        session.later(ROW)
        ask()
        session.later("DELETE FROM waiting WHERE id = 2")
        assert session.one(COUNT) == (2,)
    assert session.changed(ROW) == 1
    session.later(ROW)
    session.run("COMMIT")
    assert session.one(COUNT) == (4,)


def test_what_one_of_them_raises_the_next_call_raises(session: Session) -> None:
    for ask in (lambda: session.run("SELECT 1"), lambda: session.rows("SELECT 1")):
        session.later("SELECT 1 / 0")
        session.later(ROW)
        with pytest.raises(Refusal, match="division by zero") as refused:
            ask()
        assert refused.value.sqlstate == "22012"
        session.run("ROLLBACK")
        session.run("BEGIN")
        assert session.one(COUNT) == (0,)


def test_those_of_a_transaction_that_is_undone_are_forgotten(session: Session) -> None:
    """With them a transaction that has failed couldn't be rolled back."""
    with pytest.raises(Refusal, match="division by zero"):
        session.run("SELECT 1 / 0")
    session.later(ROW)
    session.forget()
    session.run("ROLLBACK")
    assert session.one(COUNT) == (0,)
