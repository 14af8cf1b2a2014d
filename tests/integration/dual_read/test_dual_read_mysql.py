"""Dual read to MySQL and MariaDB targets, whose ledger is a table beside the rows: every verdict under hot
writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.dual_read.dual_stream import ROWS, SHOUTED, WRONG, Stream
from tests.integration.dual_read.test_dual_read import HOT, compared, pair
from tests.servers import Database
from verify.dual_read.verdict import Outcome
from verify.readers.mysql.gtids import gtid_intervals
from verify.verdict import Verdict

pytestmark = pytest.mark.integration

PAIRS = {
    "postgresql to mysql": ("old_pg", "new_mysql"),
    "mysql to mariadb": ("old_mysql", "new_maria"),
    "mariadb to mysql": ("old_maria", "new_mysql"),
}


@pytest.fixture(params=PAIRS)
def stream(request: pytest.FixtureRequest) -> Iterator[Stream]:
    old, new = (request.getfixturevalue(name) for name in PAIRS[request.param])
    made = Stream(old, new)
    yield made
    made.close()


def test_every_verdict_under_hot_writes(stream: Stream) -> None:
    stream.spoil()
    stream.start()
    quiet = {"id": [WRONG, SHOUTED, ROWS]}
    result = compared(stream, pair(parameters=HOT, name="hot"), pair(parameters=quiet, name="quiet"))
    hot, planted = result.pairs
    lags, matches = hot.lag, hot.match
    for _ in range(20):  # both are a matter of chance; that it is called nothing worse is not
        assert (hot.bug, hot.semantic) == (0, 0)
        if lags and matches:
            break
        (hot,) = compared(stream, pair(parameters=HOT, name="hot"), repeat=10).pairs
        lags, matches = lags + hot.lag, matches + hot.match
    assert lags
    assert matches
    assert result.verdict is Verdict.DIFFERENT
    assert (planted.match, planted.bug, planted.semantic, planted.unknown) == (1, 1, 1, 0)
    shown = {sample.outcome: sample for sample in planted.samples}
    assert [(c.column, c.old, c.new) for c in shown[Outcome.BUG].cells] == [("visits", "0", "1")]
    assert dict(planted.causes)["case"] == 1
    for sample in shown.values():
        assert at_a_position(stream.old, sample.target_at), sample.target_at
        assert sample.source_high


def at_a_position(old: Database, text: str) -> bool:
    """Whether the ledger on the target told a place in the source's log, as that source writes places."""
    if old.kind == "postgresql":
        return "/" in text
    return ":" in text and gtid_intervals(text) is not None if old.kind == "mysql" else "-" in text


def test_a_target_without_a_ledger_or_that_stays_behind_proves_nothing(stream: Stream) -> None:
    stream.old.execute("UPDATE person SET visits = visits + 1 WHERE id = 7")
    (found,) = compared(stream, pair(parameters={"id": [6, 7]}), settle_s=1).pairs
    assert (found.match, found.unknown, found.bug) == (1, 1, 0)
    stream.new.execute("DROP TABLE migrator_ledger")
    (found,) = compared(stream, pair(parameters={"id": [7]}), settle_s=1).pairs
    assert (found.match, found.unknown, found.bug) == (0, 1, 0)
