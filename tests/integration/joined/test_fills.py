"""Joined targets filled piece by piece: what is committed stays, batches go on between, covered rows are right."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.targets.postgres.mirror.mirror import PostgresMirror
from migrator.adapters.targets.shared.mirror.batch import BatchMirror
from migrator.adapters.targets.shared.mirror.coverage import Coverage
from migrator.errors import TargetError
from migrator.model.progress import Filling
from migrator.ports.mirror import ALL_NUMBERS, Covered, JoinedTarget
from tests.integration import shop
from tests.integration.joined.joined_bench import JoinedBench
from tests.integration.joined.test_joined_bench import ORDERS, Stopped, started_again, stop_at, transact
from tests.integration.joined.test_joined_run import judged
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

SOME = ("order_summary", "sales", "circle", "party")
"""By a key that is its own number, by a computed grain, with keys that move from grain to grain, with two grains."""
GRAINS = 20  # of all targets together


@pytest.fixture(params=["pg", "maria"])
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database) -> Project:
    shop.create(old_pg, ORDERS)
    return shop.make(tmp_path / "project", old_pg, request.getfixturevalue(f"new_{request.param}"))


@pytest.fixture
def bench(project: Project, tmp_path: Path, spark: SparkSession) -> Iterator[JoinedBench]:
    made = JoinedBench(project, tmp_path, slice_grains=GRAINS, only=SOME).begin()
    yield made
    made.close()


def in_the_ledger(bench: JoinedBench) -> dict[str, Filling]:
    checkpoint = bench.parts.target.open(bench.epoch).checkpoint
    assert checkpoint is not None
    return {one.target: one for one in checkpoint.filling}


def moving(number: int) -> list[str]:
    """A transaction whose rows leave grains and come to others, near and far."""
    return [
        f"UPDATE order_line SET order_id = {ORDERS + 1} - order_id, line_no = line_no + {100 << number}"
        f" WHERE order_id % 5 = {number % 5}"
        f" AND EXISTS (SELECT 1 FROM orders o WHERE o.order_id = {ORDERS + 1} - order_line.order_id)",
        f"UPDATE customer SET referrer_id = (customer_id * {number + 3}) % 29 + 1 WHERE customer_id % 3 <> 1",
        f"UPDATE product SET category_id = (product_id + {number}) % 7 + 1, price = price + 7"
        f" WHERE product_id % 4 = {number % 4}",
    ]


def beyond(project: Project) -> dict[str, list[Any]]:
    """Rows of the target that the source's mapping hasn't, per table that has any."""
    found = {}
    for table in SOME:
        wanted = Counter(map(shop._plain, project.old.query(shop.expected(project.old, table))))
        actual = Counter(map(shop._plain, project.new.query(f"SELECT * FROM {table}")))
        if more := actual - wanted:
            found[table] = list(more)
    return found


def keys_of_orders(project: Project) -> set[int]:
    return {int(row[0]) for row in project.new.query("SELECT order_id FROM order_summary")}


def filled_while_rows_move(bench: JoinedBench) -> Iterator[int]:
    """Fills piece by piece, with a batch after each; yields its number after each commit."""
    transactions = shop.changes(7, ORDERS)
    bench.dump(*shop.TABLES)
    number = 0
    while bench.fills().filling:
        bench.piece()
        yield number
        transact(bench.project, [*moving(number), *next(transactions)])
        bench.follow()
        yield number
        number += 1


@pytest.mark.slow
def test_between_pieces_every_committed_state_is_right_as_far_as_it_is_covered(bench: JoinedBench) -> None:
    project, sizes = bench.project, list[int]()
    for _ in filled_while_rows_move(bench):
        assert beyond(project) == {}
        sizes.append(len(keys_of_orders(project)))
        left = in_the_ledger(bench)
        assert {one.target: one for one in bench.fills().filling} == left
        for table in set(SOME) - left.keys():
            assert shop.differences(project, (table,)) == {}, "what isn't being filled is whole"
        if project.new.kind == "postgresql" and "order_summary" in left:
            covered = int(project.new.query(
                "SELECT coalesce(number, -1) FROM migrator_mirror.filling WHERE target = 'order_summary'"
            )[0][0])  # fmt: skip
            wanted = {row[0] for row in project.old.query("SELECT order_id FROM orders")}
            assert keys_of_orders(project) == {one for one in wanted if one <= covered}
    assert shop.differences(project, SOME) == {}
    assert len(set(sizes)) > 5, "it wasn't filled in pieces"
    assert in_the_ledger(bench) == {}
    transact(project, moving(20))
    bench.follow()
    assert shop.differences(project, SOME) == {}, "and it is followed like any other"


@pytest.mark.slow
def test_killed_in_a_piece_or_between_pieces_it_goes_on_where_it_was(bench: JoinedBench) -> None:
    project = bench.project
    stop_at(bench, "target.moved")
    with pytest.raises(Stopped):
        bench.dump(*shop.TABLES)
    started_again(bench)
    assert not bench.fills().filling
    bench.apply_again(bench.last)
    assert {one.target for one in bench.fills().filling} == set(SOME)
    for point in ("fill.mapped", "target.merged", "target.moved", "target.committed"):
        bench.piece()
        before, there = in_the_ledger(bench), keys_of_orders(project)
        stop_at(bench, point)
        with pytest.raises(Stopped):
            bench.piece()
        started_again(bench)
        now = in_the_ledger(bench)
        if point == "target.committed":
            assert now["order_summary"].pieces == before["order_summary"].pieces + 1
            assert keys_of_orders(project) > there
        else:
            assert now == before, "the piece that was killed isn't covered"
            assert keys_of_orders(project) == there
    once = written(project)
    assert 0 < len(once) < ORDERS
    left = bench.fill()
    assert 0 < left < ORDERS
    assert {key: row for key, row in written(project).items() if key in once} == once, "what is covered stays"
    assert shop.differences(project, SOME) == {}


def written(project: Project) -> dict[Any, Any]:
    """The transaction that wrote each row, where the server tells that."""
    by = "xmin::text" if project.new.kind == "postgresql" else "0"
    return dict(project.new.query(f"SELECT order_id, {by} FROM order_summary"))


@pytest.mark.slow
def test_a_fill_that_is_forgotten_begins_anew_as_a_whole(bench: JoinedBench) -> None:
    """As an operator asks for it, or a mapping that was changed between two runs: what is there is of another one."""
    project = bench.project
    bench.dump(*shop.TABLES)
    bench.piece()
    bench.close()
    assert project.command("remap", "order_summary") == 0
    project.new.execute("UPDATE order_summary SET products = 'of another mapping'")
    bench.begin(2)
    transact(project, moving(1))
    bench.follow()
    assert shop.differences(project, ("order_summary",)) == {}
    assert "order_summary" not in in_the_ledger(bench)
    bench.fill()
    assert shop.differences(project, SOME) == {}


@pytest.mark.slow
@pytest.mark.parametrize("project", ["pg"], indirect=True)
def test_grains_that_are_not_covered_would_be_noticed(
    bench: JoinedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: batches that write every grain they touch."""
    monkeypatch.setattr(Coverage, "touched", lambda self, target, place, grains: grains)
    numbers = filled_while_rows_move(bench)
    assert any(len(keys_of_orders(bench.project)) > GRAINS for _ in (next(numbers), next(numbers)))


@pytest.mark.slow
@pytest.mark.parametrize("project", ["pg"], indirect=True)
def test_rows_of_grains_by_half_would_be_noticed(bench: JoinedBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: the rows of all touched grains read at once, those that have left for others too.

    What they make is there too early: seen beside the source, or refused when its own grain's piece brings it.
    """
    monkeypatch.setattr(Coverage, "of", lambda self, target: None)
    touched = Coverage.touched

    def as_before(self: Coverage, target: JoinedTarget, place: int, grains: str) -> str:
        with monkeypatch.context() as whole:
            whole.setattr(Coverage, "of", lambda own, one: own.all().get((one.table.id.name, one.digest())))
            return touched(self, target, place, grains)

    monkeypatch.setattr(Coverage, "touched", as_before)
    try:
        noticed = any(beyond(bench.project) for _ in filled_while_rows_move(bench))
    except TargetError as error:
        noticed = "exists already" in str(error)
    assert noticed


@pytest.mark.slow
@pytest.mark.parametrize("project", ["pg"], indirect=True)
def test_a_range_noted_before_its_rows_would_be_noticed(
    bench: JoinedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the note is committed by itself, the rows afterwards; between them the process dies."""
    note = PostgresMirror.note_covered

    def at_once(self: PostgresMirror, target: JoinedTarget, covered: Covered) -> None:
        note(self, target, covered)
        self._session.run("COMMIT")
        self._session.run("BEGIN")

    bench.dump(*shop.TABLES)
    bench.piece()
    with monkeypatch.context() as broken:
        broken.setattr(PostgresMirror, "note_covered", at_once)
        stop_at(bench, "fill.mapped")
        with pytest.raises(Stopped):
            bench.piece()
    started_again(bench)
    bench.fill()
    assert "order_summary" in shop.differences(bench.project, SOME)


@pytest.mark.slow
def test_rows_point_at_rows_that_are_not_there_yet_until_the_fill_is_over(
    project: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Foreign keys are checked as a whole with the last piece."""
    some = ("order_summary", "pick")
    project.new.execute("ALTER TABLE pick ADD FOREIGN KEY (order_id) REFERENCES order_summary (order_id)")
    bench = JoinedBench(project, tmp_path, slice_grains=GRAINS, only=some).begin()
    bench.dump(*shop.TABLES)
    for number in range(2):
        bench.piece()
        transact(project, moving(number))
        bench.follow()
    relaxed = {"postgresql": "session_replication_role = replica"}.get(
        project.new.kind, "foreign_key_checks = 0"
    )
    owner = project.new.connect()
    with owner.cursor() as cursor:
        cursor.execute(f"SET {relaxed}")
        cursor.execute("DELETE FROM order_summary WHERE order_id = 3")
    owner.close()
    with pytest.raises(TargetError, match="points at a row of"):
        bench.fill()
    left = in_the_ledger(bench)
    assert left, "the last piece was undone"
    project.new.execute("INSERT INTO order_summary VALUES (3, 'put back', 0, 0, NULL)")
    transact(project, ["UPDATE order_line SET quantity = quantity + 1 WHERE order_id = 3"])
    bench.follow()
    bench.fill()
    assert shop.differences(project, some) == {}
    bench.close()


@pytest.mark.slow
def test_a_run_that_was_killed_between_pieces_says_what_is_covered_and_ends_equal(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    shop.create(old_pg, ORDERS)
    project = shop.make(tmp_path / "run", old_pg, new_pg, ("order_summary",))
    with project.config.open("a") as config:
        config.write(f"\n[apply]\nslice_grains = {GRAINS}\n")
    process = project.process("run", "--plain", crash_at="fill.committed:2")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL, output
    there = keys_of_orders(project)
    assert 0 < len(there) < ORDERS
    once = written(project)
    capfd.readouterr()
    assert project.command("status") == 5, "nobody leads"
    assert "joined     order_summary: being filled, " in capfd.readouterr().out
    assert project.command("verify", "--wait", "5") == 3
    assert "it is being filled" in capfd.readouterr().out
    project.run_here()
    assert shop.differences(project, ("order_summary",)) == {}
    assert {key: row for key, row in written(project).items() if key in once} == once
    assert judged(project) == 0


def test_a_piece_has_no_more_rows_than_it_may(bench: JoinedBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many grains may be in it: some have many rows."""
    monkeypatch.setattr("migrator.adapters.targets.shared.mirror.batch._PIECE_ROWS", 12)
    piece, sizes = BatchMirror.piece, list[int]()

    def measured(self: BatchMirror, target: JoinedTarget, rows: int) -> Any:
        sides = piece(self, target, rows)
        if target.table.id.name == "order_summary":
            sizes.append(sides.after["orders"].num_rows)
        return sides

    monkeypatch.setattr(BatchMirror, "piece", measured)
    bench.dump(*shop.TABLES)
    bench.piece()
    bench.piece()
    assert len(sizes) == 2
    assert 0 < max(sizes) < GRAINS // len(SOME), "it has fewer grains"
    assert beyond(bench.project) == {}


def test_what_is_covered_of_each_reach() -> None:
    begun = Covered(0, None, Filling("t", of_rows=9))
    assert (begun.bound(0), begun.bound(1)) == (None, None)
    some = begun.advanced(-5, 4)
    assert (some.bound(0), some.bound(1), some.filling) == (-5, None, Filling("t", 1, 4, 9))
    one = some.advanced(None, 3)
    assert (one.bound(0), one.bound(1), one.reach) == (ALL_NUMBERS, None, 1)
    assert one.advanced(None, 2) == Covered(2, None, Filling("t", 3, 9, 9))
