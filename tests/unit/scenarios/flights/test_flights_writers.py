"""The writers' arithmetic, and how a workload judges the end of a transaction (servers: tests/integration)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.database import Connection, Database
from scenarios.flights import draws, writers
from scenarios.workload import Action, RollBack, Session, Workload, WriterReport

FLIGHT = {"sched_dep_time": 2350, "sched_arr_time": 30, "year": 2013, "month": 7, "day": 4}


class Cursor:
    rowcount = 2

    def execute(self, statement: Any, parameters: Any = (), /) -> None:
        if statement == "refused":
            raise psycopg.errors.UniqueViolation("key taken")

    def fetchall(self) -> list[tuple[Any, ...]]:
        return []

    def close(self) -> None:
        pass


class FakeConnection:
    """A connection whose COMMIT, and whose ROLLBACK after it, can break."""

    def __init__(self, breaks: bool):
        self.breaks = breaks

    def cursor(self) -> Cursor:
        return Cursor()

    def commit(self) -> None:
        if self.breaks:
            raise psycopg.OperationalError("the connection is lost")

    def rollback(self) -> None:
        if self.breaks:
            raise psycopg.OperationalError("the connection is lost")

    def close(self) -> None:
        pass


def run(
    monkeypatch: pytest.MonkeyPatch,
    action: Callable[[Session], None],
    connect: Callable[..., Connection],
    **options: Any,
) -> WriterReport:
    """One writer until it has ended three transactions or failed to connect three times."""
    monkeypatch.setattr(Database, "connect", connect)
    database = Database("postgresql", "127.0.0.1", 1, "old", "nobody")
    workload = Workload(
        database, [Action("act", 1, action)], seed=1, threads=1, **{"rate_per_s": None, **options}
    )
    calls = 0
    note = workload._note

    def count(operation: Any, *rest: Any) -> None:
        nonlocal calls
        note(operation, *rest)
        calls += 1
        if calls >= 3:
            workload._halt.set()

    monkeypatch.setattr(workload, "_note", count)
    workload.start()
    assert workload.wait(10)
    return workload.stop()


def change(session: Session) -> None:
    session.change("accepted")


def refused(session: Session) -> None:
    session.change("accepted")
    session.change("refused")


def undo(session: Session) -> None:
    session.change("accepted")
    raise RollBack


@pytest.mark.parametrize(
    ("action", "breaks", "outcome"),
    [
        (change, False, "ok"),
        (change, True, "unknown"),
        (refused, False, "failed"),
        (refused, True, "failed"),
        (undo, False, "rolled back"),
    ],
)
def test_a_transaction_ends_in_one_of_four_ways(
    monkeypatch: pytest.MonkeyPatch, action: Callable[[Session], None], breaks: bool, outcome: str
) -> None:
    report = run(monkeypatch, action, lambda *_, **__: FakeConnection(breaks))
    assert {operation.outcome for operation in report.operations} == {outcome}
    ended = len(report.operations)
    assert report.commits == (ended if outcome == "ok" else 0)
    assert report.row_changes == 2 * report.commits
    assert report.unknown == (ended if outcome == "unknown" else 0)
    assert report.failures == (ended if outcome == "failed" else 0)
    assert report.rollbacks == (ended if outcome == "rolled back" else 0)


def test_a_server_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Connection:
        raise ConnectionFailed("can't connect", cause="refused")

    report = run(monkeypatch, change, away)
    assert [operation.name for operation in report.operations] == ["connect"] * 3
    assert report.failures == 3


def test_a_fault_of_the_writer_itself_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Session) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(monkeypatch, broken, lambda *_, **__: FakeConnection(False))


def test_the_rate_bounds_the_row_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, change, lambda *_, **__: FakeConnection(False), rate_per_s=20.0)
    assert report.seconds >= 0.2  # the third of three transactions of two rows starts after four rows


def test_a_workload_starts_once_and_needs_actions() -> None:
    database = Database("postgresql", "127.0.0.1", 1, "old", "nobody")
    with pytest.raises(MigratorError, match="needs actions"):
        Workload(database, [], seed=1, rate_per_s=None, threads=1)
    with pytest.raises(MigratorError, match="rate"):
        Workload(database, [Action("act", 1, change)], seed=1, rate_per_s=0, threads=1)


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(Database("postgresql", "h", 1, "old", "me", "secret"))


def test_midnight_is_2400_as_in_the_real_data() -> None:
    assert [writers._clock(minutes) for minutes in (0, 1, 60, 1439, 1440, -1)] == [
        2400, 1, 100, 2359, 2400, 2359,
    ]  # fmt: skip


def test_clocks_and_delays_agree() -> None:
    rng = random.Random(5)
    for _ in range(500):
        row = writers._with_times(dict(FLIGHT), rng)
        for clock, plan, delay in (
            ("dep_time", "sched_dep_time", "dep_delay"),
            ("arr_time", "sched_arr_time", "arr_delay"),
        ):
            apart = writers._minutes(row[plan]) + row[delay] - writers._minutes(row[clock])
            assert apart % 1440 == 0
            assert 1 <= row[clock] <= 2400


def test_the_hour_in_utc_follows_summer_time() -> None:
    assert writers._time_hour(FLIGHT, 5) == "2013-07-04T09:00:00Z"
    assert writers._time_hour(FLIGHT | {"month": 12}, 5) == "2013-12-04T10:00:00Z"


def test_the_hot_day_belongs_to_the_hot_rows() -> None:
    rng = random.Random(3)
    days = {draws.day(rng) for _ in range(5000)}
    assert writers.HOT_DAY not in days
    assert {(2013, 3, 10), (2013, 11, 3)} <= days
    assert all(day[0] == 2013 for day in days)


@pytest.mark.parametrize(("hot_percent", "share"), [(0, 0.0), (25, 0.25), (100, 1.0)])
def test_hot_share(hot_percent: int, share: float) -> None:
    database = Database("postgresql", "127.0.0.1", 1, "old", "nobody")
    made = writers.FlightWriters(database, hot_percent=hot_percent)
    weights = {action.name: action.weight for action in made._actions}
    assert weights["raise hot pair"] / sum(weights.values()) == pytest.approx(share)
