"""How long a verification waits for a target that doesn't follow."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

from verify.readers.pending import Pending, PendingAnswer
from verify.readers.snapshot import LedgerState, LogPlace
from verify.tables.rounds.live import Limits, LiveComparison

WAIT_S = 0.4


class Behind:
    """A source whose log can't tell what waits in it, as that of MySQL and MariaDB."""

    def __init__(self) -> None:
        self.idle: set[str] = set()

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Any) -> Pending:
        answer = PendingAnswer.NO if set(tables) <= self.idle else PendingAnswer.UNKNOWN
        return Pending(answer, "the ledger is behind")


def test_tables_do_not_wait_one_after_the_other_for_a_target_that_stands_still(tmp_path: Path) -> None:
    source, standing = Behind(), LedgerState(1, 1, 5, "5", None)
    live: Any = LiveComparison(
        source,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        "s",
        ("mysql", "mysql"),
        lambda: None,  # type: ignore[arg-type, return-value]
        tmp_path,
        Limits(wait_s=WAIT_S),
    )
    upto, began = LogPlace(9, "9"), monotonic()
    assert not live._wait_for(["a"])(upto, lambda: standing).reached
    first = monotonic() - began
    for _ in range(20):
        assert not live._wait_for(["b"])(upto, lambda: standing).reached
    assert first >= WAIT_S
    assert monotonic() - began - first < WAIT_S * 10, "twenty tables would have waited twenty times"
    source.idle = {"c"}
    assert live._wait_for(["c"])(upto, lambda: standing).reached, (
        "what is known to be complete needs no waiting"
    )
    began, moved = monotonic(), LedgerState(1, 2, 6, "6", None)
    assert not live._wait_for(["b"])(upto, lambda: moved).reached
    assert monotonic() - began >= WAIT_S, "a target that moves is waited for again"
