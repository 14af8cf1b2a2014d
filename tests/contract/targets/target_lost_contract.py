"""What every target does when its connection is lost: before each statement of a batch in turn, the COMMIT too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from migrator.errors import ConnectionFailed
from migrator.ports.target import TargetRows
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest

_STATEMENTS = ("run", "rows", "one", "load", "table", "columns", "parts", "begin")


class CutSession:
    """A writer's session that tells before it sends a statement."""

    def __init__(self, session: Any, sends: Callable[[Any], None]):
        self._session = session
        self._sends = sends

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        if name not in _STATEMENTS:
            return found

        def sent(*arguments: Any, **named: Any) -> Any:
            self._sends(self._session)
            return found(*arguments, **named)

        return sent


class Cutter:
    """Has the server end the writer's session before its ``at``-th statement from now; 0: never."""

    def __init__(self, place: TargetUnderTest, target: Any):
        self._place = place
        self.at = 0
        new_session = target._new_session
        target._forget()
        target._new_session = lambda: CutSession(new_session(), self._sends)

    def _sends(self, session: Any) -> None:
        if self.at:
            self.at -= 1
            if not self.at:
                self._place.end_session(session)


class TargetLostContract(AppliedTarget):
    """The tests of lost connections."""

    @pytest.mark.parametrize("dumping", [False, True], ids=["streaming", "dumping"])
    def test_a_connection_lost_before_any_statement_leaves_nothing_of_the_batch(
        self, place: TargetUnderTest, applier: Applier, dumping: bool
    ) -> None:
        cutter = Cutter(place, applier.target)

        def parts(number: int) -> list[TargetRows]:
            before = [(number - 1, "old", 0)] if number > 1 else None
            item = applier.part("item", chunk=[(number, "new", number)] if dumping else None, before=before)
            after = applier.part("item", before=before, after=[(number, "new", number)])
            return [item if dumping else after, applier.part("note", after=[(number, None)])]

        def attempt(number: int) -> ConnectionFailed | None:
            try:
                applier.apply(*parts(number), done=not dumping)
            except ConnectionFailed as error:
                return error
            return None

        number, cut = 0, True
        while cut:
            number += 1
            cutter.at = number
            lost = attempt(number)
            cut = cutter.at == 0
            assert cut is (lost is not None), "the session was ended, and nobody was told"
            if lost is not None:
                assert lost.retryable
                ledger = place.peek()
                assert ledger is not None
                assert ledger.segment == applier.segment, "nothing of it was committed"
                assert number not in [row[0] for row in place.rows("note")]
                assert attempt(number) is None
        assert number > 8, "a batch has more statements: they weren't counted"
        assert place.rows("item") == [(number, "new", number)]
        assert place.rows("note") == [(one, None) for one in range(1, number + 1)]
