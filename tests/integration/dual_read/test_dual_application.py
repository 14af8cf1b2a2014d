"""Dual read inside an application: the old answer comes back whatever happens on the new side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from migrator.errors import ConfigError
from tests.integration.dual_read.dual_stream import MIGRATION, SELECT_NEW, SELECT_OLD, Stream
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.dual_read import DualRead, Limits, Rules
from verify.dual_read.engine_side import engine_of
from verify.dual_read.result import PairResult
from verify.verdict import Verdict

pytestmark = pytest.mark.integration


class Broken(Exception):
    """What a side raises."""


@pytest.fixture
def stream(old_pg: Database, new_pg: Database) -> Iterator[Stream]:
    made = Stream(old_pg, new_pg)
    yield made
    made.close()


@pytest.fixture
def engines(stream: Stream) -> Iterator[tuple[Engine, Engine]]:
    old, new = engine_of(settings_of(stream.old), 10), engine_of(settings_of(stream.new), 10)
    yield old, new
    old.dispose()
    new.dispose()


def closed(dual: DualRead) -> PairResult:
    """The only pair's numbers once everything was compared."""
    dual.close()
    (pair,) = dual.result().pairs
    return pair


@pytest.mark.slow
@pytest.mark.parametrize("inline", [False, True])
def test_the_old_answer_is_returned_and_compared(
    stream: Stream, engines: tuple[Engine, Engine], inline: bool
) -> None:
    stream.start()
    dual = DualRead(*engines, MIGRATION, inline=inline, seed=3, limits=Limits(queue=1000, settle_s=5))
    for turn in range(100):
        (row,) = dual.query("person", SELECT_OLD, SELECT_NEW, {"id": 1 + turn % 3})
        assert row["id"] == 1 + turn % 3
    pair = closed(dual)
    assert (pair.compared, pair.bug, pair.semantic, pair.dropped) == (100, 0, 0, 0)
    assert pair.match > 0
    assert pair.old_latency.reads == pair.new_latency.reads == 100


def test_a_wrong_row_is_found(stream: Stream, engines: tuple[Engine, Engine]) -> None:
    stream.follow()
    stream.new.execute("UPDATE client SET seen = 5 WHERE id = 2")
    dual = DualRead(*engines, MIGRATION)
    assert dual.query("person", SELECT_OLD, SELECT_NEW, {"id": 2})[0]["visits"] == 0
    pair = closed(dual)
    assert (pair.verdict, pair.bug) == (Verdict.DIFFERENT, 1)


def test_callables_with_positions_find_it_too(stream: Stream, engines: tuple[Engine, Engine]) -> None:
    stream.follow()
    stream.new.execute("UPDATE client SET seen = 5 WHERE id = 2")

    def total(database: Database, column: str, table: str) -> Callable[[], Any]:
        return lambda: database.query(f"SELECT sum({column}) FROM {table}")[0][0]

    dual = DualRead(*engines, MIGRATION, limits=Limits(settle_s=20))
    old, new = total(stream.old, "visits", "person"), total(stream.new, "seen", "client")
    assert dual.call("total", old, new) == 0
    pair = closed(dual)
    assert (pair.verdict, pair.bug) == (Verdict.DIFFERENT, 1)
    assert [(c.old, c.new) for c in pair.samples[0].cells] == [("0", "5")]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("seed", range(4))  # both sides come first
def test_a_new_side_that_is_down_changes_nothing(
    engines: tuple[Engine, Engine], inline: bool, seed: int
) -> None:
    nowhere = create_engine("postgresql+psycopg://nobody:s3cret@127.0.0.1:1/none")
    dual = DualRead(engines[0], nowhere, MIGRATION, inline=inline, seed=seed)
    assert dual.query("one", "SELECT 1 AS x", "SELECT 1 AS x") == [{"x": 1}]
    pair = closed(dual)
    assert (pair.verdict, pair.unknown) == (Verdict.UNKNOWN, 1)
    assert "s3cret" not in repr(dual.result())


def test_a_new_side_that_never_answers_keeps_nobody_waiting() -> None:
    """Background calls don't wait at all, inline ones for their limit, and what finds no room is dropped."""
    hanging = threading.Event()
    for inline in (False, True):
        limits = Limits(threads=1, queue=1, limit_s=0.05)
        dual = DualRead(inline=inline, limits=limits, seed=1)
        assert [dual.call("slow", lambda: 7, hanging.wait) for _ in range(5)] == [7] * 5
        assert dual.result().pairs[0].dropped == 3
        hanging.set()
        assert closed(dual).compared == 2
        hanging.clear()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inline", [False, True])
def test_what_the_old_side_raises_passes_unchanged(inline: bool, seed: int) -> None:
    raised = Broken("as it is")

    def broken() -> int:
        raise raised

    limits = Limits(threads=1, queue=1)
    dual = DualRead(inline=inline, seed=seed, limits=limits)
    for _ in range(5):  # more than there is room for: each gave its room back, or was dropped
        with pytest.raises(Broken) as caught:
            dual.call("broken", broken, lambda: 1)
        assert caught.value is raised
    dual.close()
    assert dual.call("after", lambda: 3, lambda: 3) == 3


@pytest.mark.parametrize("seed", range(2))
def test_what_the_new_side_raises_is_counted(seed: int) -> None:
    def broken() -> int:
        raise Broken("new side")

    dual = DualRead(seed=seed)
    assert dual.call("new", lambda: 1, broken) == 1
    pair = closed(dual)
    assert (pair.unknown, pair.bug) == (1, 0)
    assert "Broken" in pair.reason


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_not_even_an_exit_of_the_new_side_reaches_the_application(
    error: BaseException, inline: bool, seed: int
) -> None:
    def leaves() -> int:
        raise error

    dual = DualRead(inline=inline, seed=seed, limits=Limits(threads=1))
    assert [dual.call("new", lambda: 1, leaves) for _ in range(3)] == [1, 1, 1]
    pair = closed(dual)
    assert (pair.unknown, type(error).__name__ in pair.reason) == (3, True)


@pytest.mark.parametrize("seed", range(2))
def test_the_application_may_change_the_answer_that_it_got(seed: int) -> None:
    dual, changed = DualRead(seed=seed), threading.Event()

    def new() -> list[list[int]]:
        changed.wait(10)
        return [[1, 2]]

    answer = dual.call("changed", lambda: [[1, 2]], new)
    answer[0].append(3)
    answer.clear()
    changed.set()
    assert closed(dual).match == 1


def test_without_positions_a_difference_is_unknown() -> None:
    dual = DualRead()
    assert dual.call("different", lambda: 1, lambda: 2) == 1
    pair = closed(dual)
    assert (pair.verdict, pair.unknown) == (Verdict.UNKNOWN, 1)
    assert "without engines" in pair.reason


def test_an_answer_that_can_not_be_compared_is_unknown_and_untouched() -> None:
    dual = DualRead(inline=True)
    rows = dual.call("iterator", lambda: iter([1, 2]), lambda: iter([1, 2]))
    assert list(rows) == [1, 2]
    assert closed(dual).unknown == 1


def test_only_a_sample_is_asked_and_both_orders_occur() -> None:
    order: list[str] = []

    def asked(side: str) -> Callable[[], int]:
        def ask() -> int:
            order.append(side)
            return 1

        return ask

    dual = DualRead(inline=True, seed=5, limits=Limits(sample=0.5))
    for _ in range(200):
        dual.call("sampled", asked("old"), asked("new"))
    pair = closed(dual)
    assert 60 < pair.compared < 140
    assert order.count("new") == pair.compared
    first = [a for a, b in pairwise(order) if {a, b} == {"old", "new"}]
    assert {"old", "new"} <= set(first)


def test_rules_say_what_is_accepted() -> None:
    dual = DualRead(inline=True)
    dual.call("names", lambda: ["Ann"], lambda: ["ANN"], Rules(accept=("case",)))
    pair = closed(dual)
    assert (pair.verdict, pair.accepted) == (Verdict.EQUAL, 1)


def test_wrong_limits_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match="sample=2"):
        Limits(sample=2)
    with pytest.raises(ConfigError, match="both engines"):
        DualRead(old=create_engine("postgresql+psycopg://x@127.0.0.1:1/x"))
