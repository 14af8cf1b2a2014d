"""Which tables that were replaced a run goes on with by itself."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.errors import ReplacedError, SourceError
from migrator.model.table import TableId
from migrator.run.lead.read_again import ReadAgain

T, U = TableId("s", "t"), TableId("s", "u")


def replaced(*tables: TableId, place: str = "here") -> ReplacedError:
    return ReplacedError(f"another one: {tables}", tables, where=place)


def refusing(retryable: bool) -> ReadAgain:
    def adopt(_: Sequence[TableId]) -> None:
        raise SourceError("no right", cause="not its owner", retryable=retryable)

    return ReadAgain(True, adopt)


def test_tables_join_the_publication_first_and_are_read_again() -> None:
    adopted: list[TableId] = []
    tables = ReadAgain(True, adopted.extend)
    assert tables.met(replaced(U, T), segments=3)
    assert adopted == [T, U]
    assert tables.tables == {T, U}


def test_who_wants_to_be_asked_is_asked() -> None:
    tables = ReadAgain(False, lambda _: None)
    assert not tables.met(replaced(T), segments=3)
    assert tables.tables == frozenset()


def test_the_same_words_twice_led_nowhere_and_another_place_is_another_swap() -> None:
    tables = ReadAgain(True, lambda _: None)
    assert tables.met(replaced(T), segments=3)
    assert not tables.met(replaced(T), segments=9)
    assert tables.met(replaced(T, place="there"), segments=9)


def test_what_was_met_stays_until_something_was_captured() -> None:
    """1. t is replaced; 2. before the next attempt has captured anything, u is: the third reads both again."""
    tables = ReadAgain(True, lambda _: None)
    assert tables.met(replaced(T), segments=3)
    assert tables.met(replaced(U), segments=3)
    assert tables.tables == {T, U}
    assert tables.met(replaced(T, place="there"), segments=4)
    assert tables.tables == {T}


def test_a_refusal_is_told_and_tried_again_only_where_that_may_help() -> None:
    error = replaced(T)
    assert not refusing(retryable=False).met(error, segments=1)
    assert "no right: not its owner" in error.cause
    tables = refusing(retryable=True)
    assert tables.met(replaced(T), segments=1)
    assert tables.met(replaced(T), segments=1)
    assert tables.tables == frozenset()
