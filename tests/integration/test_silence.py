"""Lines that fall silent without being cut: noticed, named, retryable; long work and slow lines are not mistaken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow as pa
import pytest

from migrator.errors import ConnectionFailed
from scenarios.faults.proxy import TcpProxy
from tests.integration.target_bench import Bench, bench, ints, texts
from tests.servers import Database

pytestmark = pytest.mark.integration
SILENCE_S = 0.5
DEADLINE_S = 30.0
TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"
SLOW = (
    TABLE,
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END'",
    "CREATE TRIGGER wait AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION wait()",
)


@pytest.fixture
def proxy(new_pg: Database) -> Iterator[TcpProxy]:
    with TcpProxy(new_pg.host, new_pg.port, kind="postgresql") as running:
        yield running


def rows(*numbers: int, text: str = "x") -> pa.Table:
    return pa.table({**ints("id", *numbers), **texts("v", *[text for _ in numbers])})


def bench_behind(proxy: TcpProxy, database: Database, *statements: str) -> AbstractContextManager[Bench]:
    return bench(database, *statements, port=proxy.port, sslmode="disable", silence_s=SILENCE_S)


def test_a_half_open_line_to_the_target_is_noticed_and_the_batch_tried_again(
    new_pg: Database, proxy: TcpProxy
) -> None:
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))
        proxy.half_open()
        began = time.monotonic()
        with pytest.raises(ConnectionFailed) as lost:
            it.apply(part)
        assert lost.value.retryable
        assert time.monotonic() - began < DEADLINE_S
        proxy.heal()
        it.target.open(1)
        it.apply(part)
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_commit_that_went_into_silence_is_looked_up_and_tried_again(
    new_pg: Database, proxy: TcpProxy
) -> None:
    """The line dies for good right before COMMIT; new connections work."""
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))
        it.target._step = once("target.moved", lambda: (proxy.half_open(), proxy.heal()))
        with pytest.raises(ConnectionFailed) as lost:
            it.apply(part)
        assert lost.value.retryable
        assert it.ledger_segment() == 1
        it.apply(part)
        assert it.ledger_segment() == 2
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_commit_that_was_done_in_silence_is_not_done_again(new_pg: Database, proxy: TcpProxy) -> None:
    """COMMIT arrives, its answer doesn't."""
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))
        silence = proxy.reset_around_commit("after", silent=True)
        it.apply(part)  # no error: the ledger says that it happened
        assert silence.fired
        assert it.ledger_segment() == 2
        it.apply(it.part("t", after=rows(3)))
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]


def once(point: str, do: Callable[[], object]) -> Callable[[str], None]:
    """A step hook that does something when a point is reached for the first time."""
    left = [do]

    def step(name: str) -> None:
        if name == point and left:
            left.pop()()

    return step


def test_a_statement_that_takes_long_is_waited_for(new_pg: Database, proxy: TcpProxy) -> None:
    with bench_behind(proxy, new_pg, *SLOW) as it:
        began = time.monotonic()
        it.apply(it.part("t", after=rows(1)))
        assert time.monotonic() - began >= 3
    assert new_pg.query("SELECT id FROM t") == [(1,)]


def test_a_slow_line_is_not_taken_for_a_dead_one(new_pg: Database, proxy: TcpProxy) -> None:
    """The server sees none of a COPY's message before all of it is there; that bytes go out is sign enough."""
    silence_s = 2 * SILENCE_S
    with bench(new_pg, TABLE, port=proxy.port, sslmode="disable", silence_s=silence_s) as it:
        it.apply(it.part("t", after=rows(0)))
        proxy.throttle(500_000)
        began = time.monotonic()
        it.apply(it.part("t", after=rows(*range(1, 2001), text="x" * 1500)))
        assert time.monotonic() - began > 4 * silence_s
    assert new_pg.query("SELECT count(*) FROM t") == [(2001,)]
