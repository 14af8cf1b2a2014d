"""One target table started anew: what it takes, in which order, and that a killed one is planned to its end."""

from __future__ import annotations

import pytest

from migrator.adapters.memory.leadership import MemoryLeadership
from migrator.errors import FencedError, MappingError, RequestError
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Mapped, TableDump, without
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.table import TableId
from migrator.ports.remains import Kind, Left
from migrator.run.commands.reset_table import TableReset, chosen, planned, reset_table
from migrator.run.steps import no_step
from tests.unit.run.commands.test_reset import World

A, B = TableId("public", "a"), TableId("public", "b")
ROWS = Left(Kind.ROWS, "t", "3 rows of t")


def ledger(fed: tuple[tuple[str, TableId], ...] | None, dumps: tuple[TableDump, ...]) -> Ledger:
    mapped = tuple(Mapped(name, "public", "", written=True) for name in ("t", "u"))
    return Ledger("shop", 3, 5, Checkpoint(Position(1, "1"), dumps=dumps, fed=fed, mapped=mapped))


DUMPED = ledger((("t", A), ("t", B), ("u", A)), (TableDump(A, done=True), TableDump(B, chunks=1)))


def test_what_was_dumped_of_its_sources_is_dumped_again() -> None:
    assert planned("t", ["a", "b"], DUMPED, RequestBook(), ROWS) == TableReset("t", True, ROWS, (A, B))
    not_begun = ledger((("t", A), ("t", B)), (TableDump(A, done=True), TableDump(B)))
    assert planned("t", ["a", "b"], not_begun, RequestBook(), None).tables == (A,), (
        "B's first dump brings its rows"
    )


def test_before_anything_was_applied_there_is_nothing_to_do() -> None:
    for none in (None, Ledger("shop", 1, 0, None)):
        assert not planned("t", ["a"], none, RequestBook(), ROWS).anything()


def test_a_killed_reset_is_planned_to_its_end_and_nothing_twice() -> None:
    assert DUMPED.checkpoint is not None
    forgotten = Ledger("shop", 4, 5, without(DUMPED.checkpoint, "t"))
    assert planned("t", ["a"], forgotten, RequestBook(), ROWS) == TableReset("t", False, ROWS, (A,))
    assert planned("t", ["a"], forgotten, RequestBook(), None) == TableReset("t", False, None, (A,))
    asked = RequestBook().start((A,), WHOLE)
    assert not planned("t", ["a"], forgotten, asked, None).anything()
    assert planned("t", ["a"], DUMPED, asked, ROWS).tables == (A,), (
        "that one was asked for before the rows went"
    )


def test_a_ledger_without_fed_targets_is_named() -> None:
    with pytest.raises(RequestError, match="doesn't know yet"):
        planned("t", ["a"], ledger(None, ()), RequestBook(), ROWS)


def test_the_ledger_forgets_one_target_and_nothing_else() -> None:
    checkpoint = DUMPED.checkpoint
    assert checkpoint is not None
    left = without(checkpoint, "t")
    assert left.fed == (("u", A),)
    assert left.mapped is not None
    assert {one.target: one.written for one in left.mapped} == {"t": False, "u": True}
    assert (left.position, left.dumps) == (checkpoint.position, checkpoint.dumps)


def test_the_ledger_first_then_the_rows_then_the_request() -> None:
    world, plan = World(), TableReset("t", True, ROWS, (A,))
    leadership = MemoryLeadership(world.election, "reset")

    def ask(tables: tuple[TableId, ...]) -> str:
        world.log.append(f"ask {tables[0].name}")
        return "r1"

    steps: list[str] = []
    assert reset_table(lambda: plan, plan, world.target, leadership, ask, steps.append) == "r1"
    assert world.log == ["forget t", "t", "ask a"]
    assert world.target.epochs == [8]
    assert steps == ["reset.marked", "reset.removed"]
    assert world.election.lease is None


def test_nothing_happens_beside_a_run_or_to_more_than_was_shown() -> None:
    world, plan = World(), TableReset("t", True, ROWS, (A,))
    leadership = MemoryLeadership(world.election, "reset")
    other = TableReset("t", True, ROWS, (A, B))
    with pytest.raises(RequestError, match="something else by now"):
        reset_table(lambda: other, plan, world.target, leadership, lambda _: "", no_step)
    MemoryLeadership(world.election, "run").acquire(0)
    with pytest.raises(FencedError):
        reset_table(lambda: plan, plan, world.target, leadership, lambda _: "", no_step)
    assert world.log == []


def test_a_target_that_the_mapping_does_not_make_is_refused() -> None:
    chosen("t", ["t", "u"])
    with pytest.raises(MappingError, match="makes no target table 'x'") as caught:
        chosen("x", ["t", "u"])
    assert caught.value.cause == "it makes t, u"
