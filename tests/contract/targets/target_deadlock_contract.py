"""What every target says when the server ends its transaction for a deadlock with another session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from migrator.errors import TargetError
from tests.contract.targets.mirrored_items import apply_joined, change, joined, mirrored
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest
from tests.contract.targets.watched_writer import WatchedWriter

_PATIENCE_S = 60


class Rival:
    """Another session, which the server doesn't choose to end. It holds one thing and asks for a second."""

    def __init__(self, place: TargetUnderTest, session: Any, holds: str, wants: str):
        self._place, self._session, self._wants = place, session, wants
        self.got = threading.Event()
        self._asking = threading.Thread(target=self._ask, daemon=True)
        self._run(holds)

    def ask(self) -> None:
        """Asks for the second thing, and returns once the server has it wait."""
        self._asking.start()
        self._place.await_waiting(self._session)

    def ended(self) -> None:
        """Lets go of everything."""
        if self._asking.ident is not None:
            self._asking.join(_PATIENCE_S)
        self._session.rollback()

    def _ask(self) -> None:
        self._run(self._wants)
        self.got.set()

    def _run(self, statement: str) -> None:
        with self._session.cursor() as cursor:
            cursor.execute(statement)


class TargetDeadlockContract(AppliedTarget):
    """The tests of deadlocks."""

    def test_a_deadlock_of_a_batch_is_named_and_the_next_try_succeeds(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1)]))
        ours = applier.part("item", before=[(1, "a", 1)], after=[(1, "b", 1), (2, "c", 2)])
        held, ledger = (
            "SELECT * FROM item WHERE id = 1 FOR UPDATE",
            f"SELECT * FROM {place.ledger} FOR UPDATE",
        )
        with self._deadlocked(place, applier, "FOR UPDATE", held, ledger) as attempt:
            attempt(lambda: applier.apply(ours))
            assert place.rows("item") == [(1, "a", 1)]
        applier.apply(ours)
        assert place.rows("item") == [(1, "b", 1), (2, "c", 2)]
        found = place.peek()
        assert found is not None
        assert found.segment == 2

    def test_a_deadlock_while_the_mirror_is_made_is_named_and_the_next_try_succeeds(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        target = joined(applier)
        applier.target.prepare_mirror([target])
        whole = place.mirror_shape()
        ours, held, wanted = place.crossed_by_the_mirror()
        with self._deadlocked(place, applier, ours, held, wanted) as attempt:
            attempt(lambda: applier.target.prepare_mirror([target]))
        applier.target.prepare_mirror([target])
        assert place.mirror_shape() == whole
        apply_joined(applier, target, change(None, [(1, "a", 1)]))
        assert place.rows("item") == mirrored(applier) == [(1, "a", 1)]

    @contextmanager
    def _deadlocked(
        self, place: TargetUnderTest, applier: Applier, ours: str, held: str, wanted: str
    ) -> Iterator[Callable[[Callable[[], None]], None]]:
        """Gives what has an attempt meet a deadlock, behind whose error another session got what it wanted.

        Args:
            place: the target.
            applier: its writer.
            ours: part of the statement by which the writer takes what the other session will ask for.
            held: takes what the writer asks for later.
            wanted: asks for what the writer has.
        """
        watched = WatchedWriter(place, applier.target)
        with place.rival() as session:
            rival = Rival(place, session, held, wanted)
            watched.followed = (ours, rival.ask)

            def attempt(act: Callable[[], None]) -> None:
                with pytest.raises(TargetError, match="busy or short of something") as refused:
                    act()
                assert refused.value.retryable
                assert "deadlock" in refused.value.cause.lower(), "no lock that was waited for too long"
                assert rival.got.wait(_PATIENCE_S), "its lock was let go of"

            try:
                yield attempt
            finally:
                rival.ended()
