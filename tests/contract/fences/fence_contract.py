"""What every fence must do. An engine's test subclasses ``FenceContract`` and provides ``place``."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from migrator.errors import ConnectionFailed, CutoverError, FencedError, MigratorError
from migrator.model.cutover.fence import FenceKind, Standing
from tests.contract.fences.fence_under_test import (
    LONG_S,
    MESSAGE,
    FencePlace,
    down,
    killed_at,
    plan_of,
    rows_of,
    run,
)

EVERY = list(FenceKind)
MOST_MOMENTS = 400


class _OfOneEngine:
    """The kinds of one engine, and a statement of a login."""

    @pytest.fixture(params=EVERY, ids=lambda kind: kind.value)
    def kind(self, request: pytest.FixtureRequest, place: FencePlace) -> FenceKind:
        """Each kind that the engine has."""
        found: FenceKind = request.param
        if found not in place.kinds:
            pytest.skip(f"the engine has no fence of kind {found}")
        return found

    def written(self, place: FencePlace, login: str, statement: str) -> None:
        """One statement of a login, in a session of its own."""
        connection = place.connect(login)
        try:
            run(connection, statement)
        finally:
            connection.close()


class KilledFenceContract(_OfOneEngine):
    """Whoever kills the tool between two statements, the fence can be raised, opened, or opened by hand.

    Subclasses provide ``place``.
    """

    @pytest.mark.parametrize("way_on", ["raise", "open", "by_hand"])
    def test_killed_while_it_is_raised(self, place: FencePlace, kind: FenceKind, way_on: str) -> None:
        before, plan = place.listing(), plan_of(place, kind)
        for number in range(1, MOST_MOMENTS):
            killed = killed_at(place, number, lambda: place.fence().raise_fence(plan, LONG_S))
            assert place.noted() or place.listing() == before, "changed, and not noted"
            if way_on == "raise":
                assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
                with pytest.raises(place.refused()):
                    self.written(place, place.app, f"DELETE FROM {place.table(0)}")
            if way_on == "by_hand":
                place.by_hand(place.fence().by_hand(plan))
            else:
                down(place, plan)
            assert place.listing() == before, number
            assert not place.noted()
            if not killed:
                return
        raise AssertionError("it never came to its end")

    @pytest.mark.parametrize("way_on", ["open", "by_hand", "raise"])
    def test_killed_while_it_is_opened(self, place: FencePlace, kind: FenceKind, way_on: str) -> None:
        before, plan = place.listing(), plan_of(place, kind)
        for number in range(1, MOST_MOMENTS):
            place.fence().raise_fence(plan, LONG_S)
            statements = place.fence().by_hand(plan)
            killed = killed_at(place, number, lambda: place.fence().open_fence(plan, LONG_S))
            if way_on == "raise":
                assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
            if way_on == "by_hand":
                place.by_hand(statements)
            else:
                down(place, plan)
            assert place.listing() == before, number
            assert not place.noted()
            if not killed:
                return
        raise AssertionError("it never came to its end")


class FenceContract(_OfOneEngine):
    """The tests of one engine. Subclasses provide ``place``."""

    def test_everybody_else_is_refused_and_afterwards_all_is_as_before(
        self, place: FencePlace, kind: FenceKind
    ) -> None:
        before, plan, fence = place.listing(), plan_of(place, kind), place.fence()
        assert fence.state(plan).standing is Standing.DOWN
        assert fence.raise_fence(plan, LONG_S).standing is Standing.UP
        assert fence.state(plan).standing is Standing.UP
        assert fence.open_transactions(plan) == ()
        for number, change in enumerate(changes(place)):
            with pytest.raises(place.refused()) as refused:
                self.written(place, place.app, change)
            if kind in place.says_where:
                assert MESSAGE in str(refused.value), number
        rows = rows_of(place)
        if plan.login:
            for change in changes(place):
                self.written(place, place.ours, change)
            assert rows_of(place) != rows
        down(place, plan)
        assert place.listing() == before
        self.written(place, place.app, f"INSERT INTO {place.table(0)} VALUES (77, 'again')")

    def test_raised_twice_and_opened_twice(self, place: FencePlace, kind: FenceKind) -> None:
        before, plan = place.listing(), plan_of(place, kind)
        for _ in range(2):
            assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
        for _ in range(2):
            down(place, plan)
        assert place.listing() == before
        assert not place.noted()

    def test_another_plan_is_refused_while_one_stands(self, place: FencePlace, kind: FenceKind) -> None:
        plan = plan_of(place, kind)
        place.fence().raise_fence(plan, LONG_S)
        other = replace(plan, message="go elsewhere")
        for act in (place.fence().raise_fence, place.fence().open_fence):
            with pytest.raises(CutoverError, match="another plan's fence stands here") as error:
                act(other, LONG_S)
        assert "open that fence first, with the plan that raised it" in error.value.remedy
        down(place, plan)
        place.fence().raise_fence(other, LONG_S)
        down(place, other)

    def test_a_leader_that_slept_changes_nothing_any_more(self, place: FencePlace, kind: FenceKind) -> None:
        plan, fence = plan_of(place, kind), place.fence()
        assert fence.raise_fence(plan, LONG_S, 1).standing is Standing.UP
        assert fence.open_fence(plan, LONG_S, 2).standing is Standing.DOWN
        before = place.listing()
        with pytest.raises(FencedError, match="a later leader has changed this fence: epoch 2, ours is 1"):
            fence.raise_fence(plan, LONG_S, 1)
        assert place.listing() == before
        assert fence.raise_fence(plan, LONG_S, 3).standing is Standing.UP
        with pytest.raises(FencedError, match="epoch 3, ours is 2"):
            fence.open_fence(plan, LONG_S, 2)
        assert fence.state(plan).standing is Standing.UP
        assert fence.open_fence(plan, LONG_S, 3).standing is Standing.DOWN
        assert (
            fence.open_fence(plan, LONG_S, 5).standing is Standing.DOWN
        )  # nothing is there, and yet it is kept
        with pytest.raises(FencedError, match="epoch 5, ours is 4"):
            fence.raise_fence(plan, LONG_S, 4)
        assert place.listing() == before
        place.by_hand(fence.by_hand(plan))
        assert fence.raise_fence(plan, LONG_S, 1).standing is Standing.UP
        place.by_hand(fence.by_hand(plan))
        assert not place.noted()

    def test_a_leader_that_takes_over_ends_the_session_of_one_that_sleeps_with_the_lock(
        self, place: FencePlace, kind: FenceKind
    ) -> None:
        plan, asleep, awake = plan_of(place, kind), threading.Event(), threading.Event()
        errors: list[BaseException] = []

        def sleeps(name: str) -> None:
            if name == "fence.opening":
                asleep.set()
                awake.wait(LONG_S)

        def open_it() -> None:
            try:
                place.fence(sleeps).open_fence(plan, LONG_S)
            except MigratorError as error:
                errors.append(error)

        place.fence().raise_fence(plan, LONG_S)
        sleeper = threading.Thread(target=open_it, daemon=True)
        sleeper.start()
        assert asleep.wait(LONG_S)
        with pytest.raises(CutoverError, match="waited for in vain") as error:
            place.fence().open_fence(plan, 1.5)
        assert "raises or opens the same fence" in error.value.cause
        assert place.fence().raise_fence(plan, LONG_S, 2).standing is Standing.UP
        awake.set()
        sleeper.join(LONG_S)
        assert [type(one) for one in errors] == [ConnectionFailed]
        assert place.fence().state(plan).standing is Standing.UP
        if (
            plan.login
        ):  # a server that takes no writes behind the fence keeps no epoch either, until it is opened
            with pytest.raises(FencedError):
                place.fence().open_fence(plan, LONG_S, 1)
        assert place.fence().open_fence(plan, LONG_S, 2).standing is Standing.DOWN

    def test_two_at_once(self, place: FencePlace, kind: FenceKind) -> None:
        before, plan = place.listing(), plan_of(place, kind)
        with ThreadPoolExecutor(4) as pool:
            for act, standing in (("raise_fence", Standing.UP), ("open_fence", Standing.DOWN)):
                acts = [pool.submit(getattr(place.fence(), act), plan, LONG_S) for _ in range(4)]
                assert {one.result().standing for one in acts} == {standing}
        assert place.listing() == before

    def test_a_way_round_that_nobody_accepted_is_refused_by_name(
        self, place: FencePlace, kind: FenceKind
    ) -> None:
        plan = plan_of(place, kind)
        before = place.listing()
        if not plan.accepted:
            return
        for label in plan.accepted:
            with pytest.raises(CutoverError) as error:
                place.fence().raise_fence(replace(plan, accepted=plan.accepted - {label}), LONG_S)
            assert label in error.value.cause
        assert place.listing() == before
        assert not place.noted()

    def test_by_hand_before_anything_was_raised_holds_afterwards(
        self, place: FencePlace, kind: FenceKind
    ) -> None:
        before, plan = place.listing(), plan_of(place, kind)
        statements = place.fence().by_hand(plan)
        place.fence().raise_fence(plan, LONG_S)
        for _ in range(2):
            place.by_hand(statements)
            assert place.listing() == before
        assert not place.noted()

    def test_late_writers_are_counted(self, place: FencePlace, kind: FenceKind) -> None:
        plan = plan_of(place, kind)
        place.fence().raise_fence(plan, LONG_S)
        assert place.fence().late(plan).count == 0
        for _ in range(3):
            with pytest.raises(place.refused()):
                self.written(place, place.app, f"DELETE FROM {place.table(0)}")
        late = place.fence().late(plan)
        if kind in place.named_late:
            assert (late.count, late.by_login) == (3, ((place.app, 3),))
        assert late.counted
        down(place, plan)

    def test_nobody_changes_rows_once_it_is_up(self, place: FencePlace, kind: FenceKind) -> None:
        plan = plan_of(place, kind)
        stop, done = threading.Event(), [0] * 6
        writers = [
            threading.Thread(target=self.hammer, args=(place, number, stop, done), daemon=True)
            for number in range(6)
        ]
        for one in writers:
            one.start()
        try:
            while not all(done):
                assert not stop.wait(0.01)
            fence = place.fence()
            fence.raise_fence(plan, LONG_S)
            for _ in range(200):
                if not fence.open_transactions(plan):
                    break
                stop.wait(0.05)
            assert fence.open_transactions(plan) == ()
            seen = [rows_of(place, number) for number in range(len(place.tables))]
            stop.wait(1.0)
            assert [rows_of(place, number) for number in range(len(place.tables))] == seen
            down(place, plan)
            so_far = list(done)
            while not all(now > then for now, then in zip(done, so_far, strict=True)):
                assert not stop.wait(0.01)
        finally:
            stop.set()
            for one in writers:
                one.join(30)

    def test_nobody_passes_triggers_in_any_other_way(self, place: FencePlace) -> None:
        plan, fence, stop = plan_of(place, FenceKind.TRIGGERS), place.fence(), threading.Event()
        writers = [
            threading.Thread(target=self.again, args=(place, statements, stop), daemon=True)
            for statements in place.harsh
        ]
        for one in writers:
            one.start()
        try:
            fence.raise_fence(plan, LONG_S)
            for _ in range(200):
                if not fence.open_transactions(plan):
                    break
                stop.wait(0.05)
            assert fence.open_transactions(plan) == ()
            seen = [rows_of(place, number) for number in range(len(place.tables))]
            stop.wait(1.0)
            assert [rows_of(place, number) for number in range(len(place.tables))] == seen
        finally:
            stop.set()
            for one in writers:
                one.join(30)
        down(place, plan)

    def again(self, place: FencePlace, statements: tuple[str, ...], stop: threading.Event) -> None:
        """An administrator's session that does one thing again and again, whatever refuses it."""
        *first, last = statements
        connection = place.connect("")
        for statement in first:
            run(connection, statement)
        while not stop.is_set():
            with suppress(*place.refused()):
                run(connection, last)
            stop.wait(0.01)
        connection.close()

    def hammer(self, place: FencePlace, number: int, stop: threading.Event, done: list[int]) -> None:
        """Writes until it is stopped, whatever refuses it: short and long transactions, with new connections."""
        connection: Any = None
        turn = 0
        while not stop.is_set():
            turn += 1
            key = 1000 + 100_000 * number + turn
            try:
                if connection is None:
                    connection = place.connect(place.app)
                run(connection, "BEGIN")
                run(connection, f"INSERT INTO {place.table(number % 3)} {values(number % 3, key)}")
                stop.wait(0.05 if number == 5 else 0.0)
                run(connection, f"UPDATE {place.table(number % 3)} SET id = id WHERE id = {key}")
                run(connection, "COMMIT")
                done[number] += 1
            except Exception:  # noqa: BLE001  refused, or its session was ended: it tries again like any application
                if connection is not None:
                    connection.close()
                connection = None
                stop.wait(0.01)
        if connection is not None:
            connection.close()


def values(number: int, key: int) -> str:
    """The values of a row with this key in one of the tables."""
    return (f"VALUES ({key}, 'x')", f"VALUES ({key}, NULL, 5)", f"VALUES ({key}, 'y')")[number]


def changes(place: FencePlace) -> list[str]:
    """Statements that change rows in every way that there is."""
    return [
        f"INSERT INTO {place.table(0)} VALUES (50, 'new')",
        f"UPDATE {place.table(0)} SET name = 'other' WHERE id = 1",
        f"DELETE FROM {place.table(1)} WHERE id = 1",
        f"INSERT INTO {place.table(2)} VALUES (60, 'odd')",
        f"DELETE FROM {place.table(0)} WHERE id = 2",
    ]
