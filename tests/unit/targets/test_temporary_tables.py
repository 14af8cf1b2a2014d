"""Temporary tables on PostgreSQL are empty when they are taken, few rows by DELETE, many by TRUNCATE."""

from __future__ import annotations

from typing import Any, cast

import pytest

from migrator.adapters.targets.postgres.rows.scratch import MANY_ROWS, Scratch
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.session import Session

COLUMNS = (("c0", "bigint"),)


class Statements:
    """Stands for a session: the statements that it was given."""

    def __init__(self) -> None:
        self._given: list[str] = []

    def run(self, statement: str) -> None:
        self._given.append(statement)

    later = run

    def asked(self) -> list[str]:
        """Those since it was asked last, without what makes tables."""
        found = [one for one in self._given if not one.startswith("CREATE")]
        self._given.clear()
        return found


@pytest.fixture
def statements() -> Statements:
    return Statements()


def test_a_scratch_table_is_emptied_when_it_is_taken_again(statements: Statements) -> None:
    scratch = Scratch(cast("Any", statements))
    scratch.begin()
    first, other = scratch.table("a", COLUMNS), scratch.table("b", COLUMNS)
    assert first != other
    assert statements.asked() == []
    scratch.begin()
    assert scratch.table("a", COLUMNS) == first
    assert statements.asked() == [f"DELETE FROM pg_temp.{first}"]


def test_a_scratch_table_that_may_have_many_rows_is_truncated_once(statements: Statements) -> None:
    scratch = Scratch(cast("Any", statements))
    scratch.begin()
    name = scratch.table("a", COLUMNS)
    scratch.seen(MANY_ROWS)
    scratch.empty(name)
    scratch.seen(MANY_ROWS + 1)
    scratch.empty(name)
    assert statements.asked() == [f"DELETE FROM pg_temp.{name}", f"TRUNCATE pg_temp.{name}"]
    for _ in range(2):  # a batch that doesn't take it comes between
        scratch.begin()
    for _ in range(2):
        scratch.table("a", COLUMNS)
    assert statements.asked() == [f"TRUNCATE pg_temp.{name}", f"DELETE FROM pg_temp.{name}"]


def test_a_staging_table_is_emptied_inside_the_batch_that_takes_it_again(statements: Statements) -> None:
    staging = StagingTables(cast("Session", statements))
    name = staging.table("t", COLUMNS, 5)
    staging.begin()
    staging.committed()
    assert staging.table("t", COLUMNS, 5) == name
    assert statements.asked() == [], "outside of a transaction it would be one of its own"
    staging.begin()
    assert statements.asked() == [f"DELETE FROM pg_temp.{name}"]
    staging.table("t", COLUMNS, 5)  # the next part of the same batch
    assert statements.asked() == [f"DELETE FROM pg_temp.{name}"]
    staging.committed()
    staging.begin()
    assert statements.asked() == []


@pytest.mark.parametrize("inside", [False, True])
def test_a_staging_table_of_many_rows_is_truncated_by_the_next_batch(
    statements: Statements, inside: bool
) -> None:
    staging = StagingTables(cast("Session", statements))
    if inside:
        staging.begin()
    name = staging.table("t", COLUMNS, MANY_ROWS + 1)
    if not inside:
        staging.begin()
    staging.committed()
    for expected in ([f"TRUNCATE pg_temp.{name}"], []):
        staging.begin()
        assert statements.asked() == expected
        staging.committed()


def test_tables_of_a_transaction_that_was_undone_are_not_emptied(statements: Statements) -> None:
    staging = StagingTables(cast("Session", statements))
    staging.begin()
    name = staging.table("t", COLUMNS, MANY_ROWS + 1)
    staging.rolled_back()
    staging.begin()
    assert statements.asked() == []
    assert staging.table("t", COLUMNS) != name
