"""Snapshots as places: their order, their tokens, the witness, the condition of a poll, and what is on disk."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.change_tables.layout import change_table
from migrator.adapters.sources.postgres.change_tables.place import (
    Place,
    PollWitness,
    Server,
    ended,
    text,
)
from migrator.adapters.sources.postgres.change_tables.polls import between
from migrator.adapters.sources.postgres.change_tables.view import NUDGE, View, on_disk
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.errors import SourceError
from migrator.model.position import Position
from migrator.model.table import TableId

SERVER = Server("7", 1)


def snapshots(steps: list[tuple[str, int]]) -> list[tuple[SnapshotWitness, frozenset[int]]]:
    """Snapshots of a made-up server, each with the transactions that it shows, by the server's own rules."""
    next_id, running, done = 3, [], set()
    seen = []
    for what, which in steps:
        if what == "begin":
            running.append(next_id)
            next_id += 1
        elif running:
            done.add(running.pop(which % len(running)))
        xmax = max(done, default=2) + 1
        xip = frozenset(xid for xid in running if xid < xmax)
        seen.append((SnapshotWitness(min(xip, default=xmax), xmax, xip), frozenset(done)))
    return seen


STEPS = st.lists(st.tuples(st.sampled_from(["begin", "end"]), st.integers(0, 9)), min_size=2, max_size=40)


@given(STEPS)
def test_orders_say_exactly_which_snapshot_shows_more(steps: list[tuple[str, int]]) -> None:
    seen = snapshots(steps)
    for one, shown in seen:
        for other, shown_by_other in seen:
            assert (ended(one) <= ended(other)) == (shown <= shown_by_other)
            witness = PollWitness(Place(SERVER, other).position().order)
            assert witness.contains((Place(SERVER, one).position().order,)) == (shown <= shown_by_other)


@given(STEPS)
def test_the_smallest_id_that_runs_is_no_such_order(steps: list[tuple[str, int]]) -> None:
    """Negative control: the tempting choice takes snapshots for the same that show different transactions."""
    made = [*steps, ("begin", 0), ("begin", 0), ("begin", 0), ("end", -1), ("end", -1)]
    (one, shown), (other, shown_by_other) = snapshots(made)[-2:]
    assert one.xmin == other.xmin
    assert shown < shown_by_other


def test_a_place_survives_its_token_and_a_poll_under_way_has_an_order_of_its_own() -> None:
    at = SnapshotWitness(5, 9, frozenset({5, 7}))
    to = SnapshotWitness(7, 12, frozenset({7}))
    place = Place(SERVER, at, capture={"public.t": "abc"})
    going = replace(place, to=to)
    assert Place.parse(place.position()) == place
    assert Place.parse(going.position()) == going
    assert place.position() < going.position() < going.reached().position()
    assert text(at) == "5:9:5,7"


@pytest.mark.parametrize("token", ["16/B374D848@7", "", "{}", '{"system":"7","timeline":1,"at":"5"}'])
def test_a_position_of_another_kind_is_refused(token: str) -> None:
    with pytest.raises(SourceError):
        Place.parse(Position(1, token))


def test_the_condition_of_a_poll_takes_what_ended_in_between() -> None:
    older, newer = SnapshotWitness(5, 9, frozenset({5, 7})), SnapshotWitness(7, 12, frozenset({7, 10}))
    condition = between(older, newer).replace('"__$start_lsn"', "x").replace("pg_catalog.", "")
    assert condition == (
        "(x = ANY ('{5,7}'::xid8[]) OR x >= '9'::xid8) AND x < '12'::xid8 AND x <> ALL ('{7,10}'::xid8[])"
    )


class Disk:
    """A server's log that gets to disk after some looks, or after a nudge only."""

    def __init__(self, looks: int, nudge_needed: bool):
        self.looks, self.needs_nudge, self.nudges = looks, nudge_needed, 0

    def execute(self, statement: str) -> str:
        if statement == NUDGE:
            self.nudges += 1
            self.needs_nudge = False
            return "1"
        self.looks -= 1
        return "0/9" if self.looks > 0 or self.needs_nudge else "0/10"


def test_a_view_is_used_once_the_log_is_on_disk_and_a_nudge_is_the_exception() -> None:
    view = View(SERVER, SnapshotWitness(5, 5, frozenset()), inserted=16, flushed=9, clock_us=0)
    quick, stuck, never = Disk(2, False), Disk(1, True), Disk(10**9, False)
    assert on_disk(quick.execute, view, time.monotonic() + 30)
    assert quick.nudges == 0
    assert on_disk(stuck.execute, view, time.monotonic() + 30)
    assert stuck.nudges == 1
    assert not on_disk(never.execute, view, time.monotonic())


def test_change_tables_of_long_names_fit_and_differ() -> None:
    one, other = TableId("s", "x" * 62 + "a"), TableId("s", "x" * 62 + "b")
    names = {change_table(one).name, change_table(other).name}
    assert len(names) == 2
    assert all(len(name.encode()) <= 63 for name in names)
    assert change_table(TableId("public", "t")) == TableId("migrator_cdc", "public_t_CT")
