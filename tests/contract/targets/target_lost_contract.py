"""What every target does when its connection is lost: before each statement in turn of a batch, its COMMIT too, and
of the mirror's making."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from migrator.errors import ConnectionFailed
from migrator.ports.target import TargetRows
from tests.contract.targets.mirrored_items import apply_joined, change, joined, mirrored
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest
from tests.contract.targets.watched_writer import WatchedWriter


def attempted(attempt: Callable[[], None]) -> ConnectionFailed | None:
    """How an attempt has failed."""
    try:
        attempt()
    except ConnectionFailed as error:
        return error
    return None


def cut_everywhere(
    watched: WatchedWriter,
    attempt: Callable[[int], None],
    begin: Callable[[], object] = lambda: None,
    undone: Callable[[int], None] = lambda number: None,
) -> int:
    """Loses the connection before the first call of the driver, then before the second, ... until an attempt has no
    more of them; returns how often it was tried.

    Args:
        watched: the writer.
        attempt: what is tried, by number; after it was lost it must succeed.
        begin: done before each attempt.
        undone: checks, after a lost one, that nothing of it is there.
    """
    number, cut = 0, True
    while cut:
        number += 1
        begin()
        watched.cut_at = number
        lost = attempted(partial(attempt, number))
        cut = watched.cut_at == 0
        watched.cut_at = 0
        assert cut is (lost is not None), "the session was ended, and nobody was told"
        if lost is not None:
            assert lost.retryable
            undone(number)
            assert attempted(partial(attempt, number)) is None
    return number


class TargetLostContract(AppliedTarget):
    """The tests of lost connections."""

    @pytest.mark.parametrize("dumping", [False, True], ids=["streaming", "dumping"])
    def test_a_connection_lost_before_any_statement_leaves_nothing_of_the_batch(
        self, place: TargetUnderTest, applier: Applier, dumping: bool
    ) -> None:
        def parts(number: int) -> list[TargetRows]:
            before = [(number - 1, "old", 0)] if number > 1 else None
            item = applier.part("item", chunk=[(number, "new", number)] if dumping else None, before=before)
            after = applier.part("item", before=before, after=[(number, "new", number)])
            return [item if dumping else after, applier.part("note", after=[(number, None)])]

        def undone(number: int) -> None:
            self._at(place, applier.segment)
            assert number not in [row[0] for row in place.rows("note")]

        number = cut_everywhere(
            WatchedWriter(place, applier.target),
            lambda number: applier.apply(*parts(number), done=not dumping),
            undone=undone,
        )
        assert number > 8, "a batch has more statements: they weren't counted"
        assert place.rows("item") == [(number, "new", number)]
        assert place.rows("note") == [(one, None) for one in range(1, number + 1)]

    @pytest.mark.slow
    def test_a_connection_lost_before_any_statement_leaves_nothing_of_a_joined_batch(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        whole = joined(applier)
        target = replace(whole, reaches=whole.reaches[:1])
        applier.target.prepare_mirror([target])
        apply_joined(applier, target, change(None, [(0, "old", 0)]))

        def undone(number: int) -> None:
            self._at(place, applier.segment)
            assert place.rows("item") == [(number - 1, "old" if number == 1 else "new", number - 1)]

        def attempt(number: int) -> None:
            old = (number - 1, "old" if number == 1 else "new", number - 1)
            apply_joined(applier, target, change([old], [(number, "new", number)]))

        number = cut_everywhere(WatchedWriter(place, applier.target), attempt, undone=undone)
        assert number > 20, "a joined batch has more statements: they weren't counted"
        assert place.rows("item") == mirrored(applier) == [(number, "new", number)]

    def test_a_connection_lost_while_the_mirror_is_made_is_mended_by_the_next_try(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        target = joined(applier)
        applier.target.prepare_mirror([target])
        whole = place.mirror_shape()
        assert len(whole) > 5, "the control: tables, columns and indexes are seen"

        def attempt(number: int) -> None:
            applier.target.prepare_mirror([target])
            assert place.mirror_shape() == whole

        number = cut_everywhere(WatchedWriter(place, applier.target), attempt, begin=place.drop_mirror)
        assert number > 8, "the mirror's making has more statements: they weren't counted"
        apply_joined(applier, target, change(None, [(1, "a", 1)]))
        assert place.rows("item") == mirrored(applier) == [(1, "a", 1)]

    @staticmethod
    def _at(place: TargetUnderTest, segment: int) -> None:
        ledger = place.peek()
        assert ledger is not None
        assert ledger.segment == segment, "nothing of it was committed"
