"""Lanes: what all see is one, and the failure of one ends the others."""

from __future__ import annotations

import bisect
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest

from migrator.errors import ConnectionFailed, VerifyError
from verify.readers.chunk_keys import INTEGER, Key, KeyColumn, Piece
from verify.readers.ports import SourceChunks
from verify.readers.postgres.chunks import DIALECT
from verify.readers.snapshot import LedgerState, LogPlace
from verify.tables.sweeps.chunk_sweep import Sweep
from verify.tables.sweeps.cuts import Cuts
from verify.tables.sweeps.lanes import LANES_MAX, ROWS_MIN, others_that_pay, unequal, waits_of_all
from verify.tables.sweeps.pairing import Pairing, Stopped, Views, Waited


class Lane(Pairing):
    """A sweep that fails, or goes on until it is stopped."""

    def __init__(self, fails: bool):
        super().__init__(lambda: None, lambda *_: Waited(True, ""), lambda _: None, Views())
        self._fails = fails

    def cuts(self) -> Cuts:
        return Cuts([INTEGER])

    def unequal(self, _: Cuts) -> list[Piece]:
        if self._fails:
            raise VerifyError("the server is gone")
        assert self._stopped.wait(30), "nobody stopped it"
        raise Stopped


@pytest.mark.parametrize("failing", range(4))
def test_one_lane_s_failure_ends_the_others(failing: int) -> None:
    own, *others = (cast(Sweep, Lane(place == failing)) for place in range(4))
    with pytest.raises(VerifyError, match="the server is gone"):
        unequal(own, [partial(returned, other) for other in others])


def returned(sweep: Sweep) -> Sweep:
    return sweep


def test_a_lane_whose_sessions_open_too_late_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other, failed = cast(Sweep, Lane(True)), cast(Sweep, Lane(False)), threading.Event()

    def opened() -> Sweep:
        assert failed.wait(30)
        return other

    stop = own.stop

    def stopped() -> None:
        stop()
        failed.set()

    monkeypatch.setattr(own, "stop", stopped)
    with pytest.raises(VerifyError, match="the server is gone"):
        unequal(own, [opened])


def test_a_lane_that_can_t_be_opened_ends_the_others() -> None:
    def refused() -> Sweep:
        raise ConnectionFailed("too many connections")

    with pytest.raises(ConnectionFailed, match="too many"):
        unequal(cast(Sweep, Lane(False)), [partial(returned, cast(Sweep, Lane(False))), refused])


class Keys:
    """A table of these keys, in order; ``ends`` are what it says of them."""

    dialect = DIALECT

    def __init__(self, keys: Sequence[int], ends: tuple[str, str] | None = None):
        self._keys = keys
        self.found: tuple[str, str] | None = ends or (str(keys[0]), str(keys[-1]))

    def ends(self, _: KeyColumn) -> tuple[str, str] | None:
        return self.found

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        found = re.fullmatch(r'"id" > (-?\d+) AND "id" <= (-?\d+)', where)
        assert found
        last = bisect.bisect_right(self._keys, int(found[1])) + rows - 1
        return (
            (str(self._keys[last]),) if last < len(self._keys) and self._keys[last] <= int(found[2]) else None
        )


def others(source: Any, kind: str = INTEGER, most: int = 1) -> int:
    return others_that_pay(cast(SourceChunks, source), [KeyColumn("id", "id", kind)], most)


FEW = ROWS_MIN * 8 // 5
"""Rows of a table that is too small for two, but for the few that a guess may be off by."""


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (range(1, ROWS_MIN * 2 + 1), 1),
        (range(1, FEW), 0),
        (range(-(2**63), -(2**63) + FEW * 10**6, 10**6), 0),
        ([*range(-(2**63), 2**63 - 1, 2**64 // ROWS_MIN // 4), 2**63 - 1], 3),
        (range(10**12, 10**12 + ROWS_MIN * 40, 10), 3),
        ([*range(FEW), 10**9], 0),
        ([1, *range(10**9, 10**9 + FEW)], 0),
        ([7], 0),
    ],
    ids=["dense", "small", "small and sparse", "all numbers", "gaps", "one far off", "one far before", "one"],
)
def test_how_many_lanes_pay_is_known_by_the_keys(keys: Sequence[int], wanted: int) -> None:
    assert [others(Keys(keys), most=most) for most in (1, LANES_MAX)] == [min(wanted, 1), wanted]


def test_a_table_of_other_keys_is_in_one_lane() -> None:
    keys = range(1, ROWS_MIN * 4)
    assert others(Keys(keys))
    assert not others(Keys(keys), "date")
    assert not others(Keys(keys, ("1", "NaN")))


def test_an_empty_table_is_in_one_lane() -> None:
    source = Keys([1])
    source.found = None
    assert not others(source)


class Asked:
    """A wait that notes what it was asked for; places above ``reached`` are waited for in vain."""

    def __init__(self, reached: int):
        self._reached = reached
        self.orders: list[int] = []

    def __call__(self, upto: LogPlace, _: Callable[[], LedgerState | None]) -> Waited:
        self.orders.append(upto.order)
        return Waited(upto.order <= self._reached, f"asked for {upto.order}")


@pytest.mark.parametrize(
    ("reached", "waits", "asked"),
    [
        (9, [5, 5, 4], [5]),
        (9, [5, 6, 5], [5, 6]),
        (5, [6, 6], [6, 6]),
        (5, [5, 6, 5, 6], [5, 6, 6]),
    ],
    ids=["the same or before", "beyond", "in vain", "in vain after one that was not"],
)
def test_no_lane_waits_for_a_place_that_another_saw_reached(
    reached: int, waits: list[int], asked: list[int]
) -> None:
    wait = Asked(reached)
    shared = waits_of_all(wait)
    found = [shared(LogPlace(order, ""), lambda: None).reached for order in waits]
    assert found == [order <= reached for order in waits]
    assert wait.orders == asked
