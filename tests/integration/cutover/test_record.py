"""The record of a cut-over as somebody sees it who looked before it was there."""

from __future__ import annotations

import pytest
from sqlalchemy import URL

from migrator.core import cutover as rules
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FenceKind, FencePlan
from migrator.model.cutover.record import CutoverPlan, Phase, Record
from migrator.model.table import TableId
from migrator.schema.cutovers import Book, Copy
from tests.servers import Database

pytestmark = [pytest.mark.integration]

FENCE = FencePlan(FenceKind.TRIGGERS, (TableId("public", "orders"),), "migrator", "handed over")
PLAN = CutoverPlan(FENCE, FENCE)


def url_of(database: Database) -> URL:
    """Where a copy is kept."""
    driver = "postgresql+psycopg" if database.kind == "postgresql" else "mariadb+pymysql"
    return URL.create(
        driver, database.user, database.password or None, database.host, database.port, database.database
    )


@pytest.fixture
def urls(request: pytest.FixtureRequest) -> tuple[URL, URL]:
    """Both sides, one of each kind of database."""
    return url_of(request.getfixturevalue("old_maria")), url_of(request.getfixturevalue("new_pg"))


def book(urls: tuple[URL, URL]) -> Book:
    """The record on both sides."""
    return Book(Copy(urls[0], "shop", "old"), Copy(urls[1], "shop", "new"))


@pytest.mark.parametrize("engine", ["new_pg", "new_maria"])
def test_a_leader_that_looked_before_sees_a_plan_that_is_accepted(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """A session that stays in one transaction wouldn't: the server remembers there that the table is missing."""
    url = url_of(request.getfixturevalue(engine))
    leader, operator = Copy(url, "shop", "old"), Copy(url, "shop", "old")
    try:
        assert leader.read() is None
        assert operator.make(Record(PLAN), follows=True)
        assert leader.read() == operator.read()
        assert leader.read() is not None
    finally:
        leader.close()
        operator.close()


@pytest.mark.parametrize("turned", [False, True])
def test_an_operator_who_accepts_late_takes_no_place_of_a_plan_that_is_carried_out(
    turned: bool, urls: tuple[URL, URL]
) -> None:
    """Two look, both accept; the first one's switch is under way, or over, when the second one comes."""
    first, second = book(urls), book(urls)
    try:
        for given_up in (False, True):
            seen = second.read()
            assert (seen is not None) is given_up
            first.make(rules.accepted(seen, PLAN))
            record = first.read()
            assert record is not None
            first.write(record := rules.begun(record, 1_000.0), 7)
            if turned:
                first.write(record := record.changed(phase=Phase.OPENING), 7)
            with pytest.raises(CutoverError, match="was changed meanwhile"):
                second.make(rules.accepted(seen, PLAN))
            assert first.read() == record, "the old side's copy holds"
            first.bring_up(record, 7)
            assert first._new.read() == record
            assert first.last_epoch() == 7
            first.write(record.changed(phase=Phase.FINISHED), 7)
    finally:
        first.close()
        second.close()


def test_a_plan_takes_the_place_of_one_that_was_given_up_and_counts_on(urls: tuple[URL, URL]) -> None:
    """The key of a switch names a call of the hook for ever: whoever knows it has nothing more to do."""
    kept = book(urls)
    try:
        kept.make(Record(PLAN))
        keys = set()
        for _ in range(3):
            record = kept.read()
            assert record is not None
            record = rules.begun(record, 1_000.0)
            kept.write(record, 7)
            keys.add(record.turn)
            finished = record.changed(phase=Phase.FINISHED)
            kept.write_old(finished, 7)
            kept.make(rules.accepted(finished, PLAN))
            accepted = kept.read()
            assert accepted is not None
            assert (accepted.phase, accepted.turn) == (Phase.IDLE, record.turn)
            assert kept._new.read() == accepted
            assert not kept._new.write(finished, 7, follows=False), "whoever was silent until now is refused"
        assert len(keys) == 3
    finally:
        kept.close()


def test_what_is_left_on_the_new_side_of_a_record_that_is_gone_makes_room(urls: tuple[URL, URL]) -> None:
    kept = book(urls)
    try:
        assert kept._new.make(Record(PLAN, number=40, turn=9), follows=False)
        kept.make(Record(PLAN))
        assert kept._new.read() == kept.read() == Record(PLAN)
    finally:
        kept.close()
