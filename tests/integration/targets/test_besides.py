"""Tables beside row-wise targets, on each engine: one transaction makes the target hold their rows, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from migrator.adapters.targets.mysql import besides as mysql_besides
from migrator.adapters.targets.mysql.besides import MysqlBesides
from migrator.adapters.targets.mysql.remains import MysqlRemains
from migrator.adapters.targets.postgres.besides import PostgresBesides
from migrator.adapters.targets.postgres.remains import PostgresRemains
from migrator.errors import ConnectionFailed, FencedError, MigratorError, TargetError
from migrator.model.progress import Checkpoint, Mapped, Phase, Remap
from migrator.model.remaps.remap import moved, remap_of, switched
from migrator.ports.besides import Besides
from migrator.ports.remains import Kind
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration

BESIDE = "t_migrator_next"
REMAP = Remap("t", BESIDE, Phase.FILLING)
TABLE = (
    "CREATE TABLE t (id varchar(9) PRIMARY KEY, v int UNIQUE, boss varchar(9), kept int DEFAULT 7,"
    " CONSTRAINT to_boss FOREIGN KEY (boss) REFERENCES t (id))"
)
WRITTEN = ("id", "v", "boss")


class Ended(Exception):
    """The process is killed here."""


class Place:
    """A target with a ledger, in which a table beside ``t`` is filled."""

    def __init__(self, bench: Any):
        self.bench, self.database = bench, bench.database
        bench.apply()
        port = self.port()
        port.note(lambda now: moved(replace(now, fed=(), mapped=MAPPED), "t", Phase.FILLING))
        port.make("t", BESIDE)
        port.make("t", BESIDE)  # as after a kill

    def port(self, step: Callable[[str], None] = lambda _: None) -> Besides:
        made = PostgresBesides if self.database.kind == "postgresql" else MysqlBesides
        return made(self.bench.settings, step)

    def fill(self, table: str, *rows: str) -> None:
        for row in rows:
            self.database.execute(f"INSERT INTO {table} ({', '.join(WRITTEN)}) VALUES ({row})")

    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.database.query("SELECT id, v, boss, kept FROM t ORDER BY id")]

    def checkpoint(self) -> Checkpoint:
        found: list[Checkpoint] = []

        def look(now: Checkpoint) -> Checkpoint:
            found.append(now)
            return now

        assert not self.port().note(look)
        return found[0]

    def switch(self, epoch: int = 1, step: Callable[[str], None] = lambda _: None) -> bool:
        port = self.port(step)
        return port.switch(epoch, REMAP, WRITTEN, lambda now: switched(now, REMAP)) is not None


MAPPED = tuple(Mapped(name, "s", "shape", WRITTEN, name) for name in ("t", BESIDE))


@pytest.fixture(params=["pg", "maria", "mysql"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    # The bench's writer goes on, and holds the lock that a run's has let go of by then.
    monkeypatch.setattr(mysql_besides, "_LET_GO_WITHIN_S", 0)
    database: Database = request.getfixturevalue(f"new_{request.param}")
    made = target_bench.bench if database.kind == "postgresql" else target_bench_mysql.bench
    with made(database, TABLE) as bench:
        place = Place(bench)
        place.fill("t", "'a', 1, NULL", "'b', 2, 'a'", "'c', 3, 'b'", "'d', 4, 'd'", "'same', 9, NULL")
        database.execute("UPDATE t SET kept = 8")
        # a is gone, b and c swap values, the boss of c comes with it, d goes with its own boss
        place.fill(BESIDE, "'b', 3, NULL", "'c', 2, 'e'", "'e', 1, 'b'", "'same', 9, NULL")
        yield place


BEFORE = [("a", 1, None, 8), ("b", 2, "a", 8), ("c", 3, "b", 8), ("d", 4, "d", 8), ("same", 9, None, 8)]
AFTER = [("b", 3, None, 8), ("c", 2, "e", 8), ("e", 1, "b", 7), ("same", 9, None, 8)]


def test_the_target_holds_the_rows_of_the_table_beside_and_the_ledger_says_so(place: Place) -> None:
    assert place.switch()
    assert place.rows() == AFTER
    now = place.checkpoint()
    assert remap_of(now, "t") == Remap("t", BESIDE, Phase.SWITCHED)
    assert [(one.target, one.content) for one in now.mapped or ()] == [("t", BESIDE)]
    assert not place.switch(), "once"
    place.bench.apply()
    assert remap_of(place.checkpoint(), "t") is not None, "a batch keeps it"
    place.port().drop(BESIDE)
    assert not place.port().exists(BESIDE)
    place.port().drop(BESIDE)


@pytest.mark.parametrize("point", ["remap.merged", "remap.moved"])
def test_killed_before_the_commit_neither_rows_nor_ledger_moved(place: Place, point: str) -> None:
    seen: list[list[tuple[Any, ...]]] = []

    def step(name: str) -> None:
        seen.append(place.rows())
        if name == point:
            raise Ended

    with pytest.raises(Ended):
        place.switch(step=step)
    assert all(rows == BEFORE for rows in [*seen, place.rows()])
    assert remap_of(place.checkpoint(), "t") == REMAP
    assert place.switch()
    assert place.rows() == AFTER


def test_an_older_leader_and_one_that_was_given_up_switch_nothing(place: Place) -> None:
    with pytest.raises(FencedError):
        place.switch(epoch=0)
    with pytest.raises(FencedError):
        place.port().empty(0, BESIDE)
    place.port().note(lambda now: moved(now, "t", Phase.ABORTED), "remap aborted")
    assert not place.switch()
    assert place.rows() == BEFORE
    place.port().empty(1, BESIDE)
    assert place.database.query(f"SELECT COUNT(*) FROM {BESIDE}") == [(0,)]


def test_a_newer_leader_ends_a_switch_that_is_frozen(place: Place) -> None:
    frozen, go_on, ends = threading.Event(), threading.Event(), list[MigratorError]()

    def step(name: str) -> None:
        if name == "remap.moved":
            frozen.set()
            go_on.wait(60)

    def switch() -> None:
        try:
            place.switch(step=step)
        except MigratorError as error:
            ends.append(error)

    place.bench.target.close()
    older = threading.Thread(target=switch)
    older.start()
    assert frozen.wait(30)
    newer = type(place.bench.target)(replace(place.bench.settings, lock_wait_s=1))
    try:
        assert newer.open(2).epoch == 2
    finally:
        newer.close()
        go_on.set()
        older.join()
    assert [type(error) for error in ends] == [ConnectionFailed]
    assert place.rows() == BEFORE
    assert remap_of(place.checkpoint(), "t") == REMAP


def test_a_row_of_another_owner_that_would_lose_its_parent_is_named(place: Place) -> None:
    place.database.execute(
        "CREATE TABLE theirs (t varchar(9), CONSTRAINT to_t FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
        "INSERT INTO theirs VALUES ('a'), ('b')",
    )
    with pytest.raises(TargetError, match="points at a row") as caught:
        place.switch()
    assert "constraint to_t" in caught.value.where
    assert "migrator remap t --abort" in caught.value.remedy
    assert place.rows() == BEFORE
    place.database.execute("DELETE FROM theirs WHERE t = 'a'")
    assert place.switch()
    assert place.rows() == AFTER
    assert place.database.query("SELECT t FROM theirs") == [("b",)], "nothing cascades"


def test_a_row_without_its_parent_is_named(place: Place) -> None:
    place.fill(BESIDE, "'f', 5, 'a'")
    with pytest.raises(TargetError, match="points at a row") as caught:
        place.switch()
    assert "constraint to_boss" in caught.value.where
    assert place.rows() == BEFORE


def test_a_trigger_that_changes_what_is_written_is_found(place: Place) -> None:
    if place.database.kind == "postgresql":
        place.database.execute(
            "CREATE FUNCTION less() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.v := NEW.v + 100; RETURN NEW; END $$",
            "CREATE TRIGGER less BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION less()",
            "ALTER TABLE t ENABLE ALWAYS TRIGGER less",
        )
    else:
        place.database.execute("CREATE TRIGGER less BEFORE INSERT ON t FOR EACH ROW SET NEW.v = NEW.v + 100")
    with pytest.raises(TargetError, match="don't stay in") as caught:
        place.switch()
    assert "id='e'" in caught.value.where or "id='c'" in caught.value.where or "id='b'" in caught.value.where
    assert place.rows() == BEFORE


def test_a_reset_drops_the_table_beside_also_when_it_is_finished_later(place: Place) -> None:
    made = PostgresRemains if place.database.kind == "postgresql" else MysqlRemains
    remains = made(place.bench.settings, ("t",), False)
    remains.mark(2, "begun")
    left = [one for one in remains.found().left if one.kind is Kind.STAGING]
    assert BESIDE in left[0].said
    remains.remove(left)
    assert not place.port().exists(BESIDE)
    assert not [one for one in remains.found().left if one.kind is Kind.STAGING]
