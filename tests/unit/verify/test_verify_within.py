"""The time of a verification: it ends by then, whatever the target does, and calls nothing equal that is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transforms.registry import TargetMapping
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.ports import Bracket
from verify.readers.snapshot import LedgerState, LogPlace, SourceSnapshot
from verify.tables.compare.compare import EQUAL
from verify.tables.result import table_verdict
from verify.tables.rounds import live as rounds
from verify.tables.rounds.live import Limits, LiveComparison, Round
from verify.tables.rounds.progress import TableProgress
from verify.tables.rounds.table_reads import TableReads
from verify.tables.rounds.watch import SAY_EVERY_S, Watch
from verify.tables.sweeps import pairing
from verify.tables.sweeps.pairing import SOURCE_VIEW, TARGET_READ, Pairing, TimeIsUp, Views, Waited
from verify.tables.unsettled import not_judged, not_settled, settled_by
from verify.verdict import Verdict

WITHIN_S = 600.0


class Clock:
    """Seconds that pass only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Lagging:
    """Both sides: a source whose log goes on, and a target whose ledger follows ``lag`` behind it."""

    def __init__(self, clock: Clock, lag: int):
        self.clock, self.lag = clock, lag

    def position(self) -> LogPlace:
        order = int(self.clock.now * 10)
        return LogPlace(order, f"log {order}")

    def ledger(self) -> LedgerState:
        order = int(self.clock.now * 10) - self.lag
        return LedgerState(1, 1, order, f"applied {order}", None)

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Any) -> Pending:
        return Pending(PendingAnswer.UNKNOWN, "the ledger is behind")


@dataclass(frozen=True)
class Judge:
    clock: Clock
    live: Any
    said: list[str]


def judge(tmp_path: Path, lag: int = 10**9, wait_s: float = 60.0, within_s: float = WITHIN_S) -> Judge:
    clock, said = Clock(), list[str]()
    sides: Any = Lagging(clock, lag)
    watch = Watch(within_s, said.append, clock, clock.sleep)
    live = LiveComparison(
        sides,
        sides,
        "s",
        ("mysql", "mysql"),
        lambda: None,  # type: ignore[arg-type, return-value]
        tmp_path,
        Limits(wait_s=wait_s),
        watch=watch,
    )
    return Judge(clock, live, said)


def target() -> TargetMapping:
    return TargetMapping("item", ("id",), None, lambda rows: rows, ("thing",))


def table(**known: Any) -> TableProgress:
    made = TableProgress(target())
    for name, value in known.items():
        setattr(made, name, value)
    return made


def test_a_wait_leaves_time_for_reading_and_says_what_it_waits_for(tmp_path: Path) -> None:
    it = judge(tmp_path, wait_s=1e6)
    began, upto = it.clock.now, it.live.source.position()
    it.live.watch.begins(1, [table(rounds=1, aside_keys=4483, statuses={EQUAL: 10_000})])
    found = it.live._wait_for(["orders"])(upto, it.live.target.ledger)
    assert not found.reached
    assert "did not reach the source read at log 1000 in 540 s, it stood at applied" in found.detail
    assert 0.9 * WITHIN_S <= it.clock.now - began < 0.9 * WITHIN_S + 1
    assert 50 < len(it.said) <= 540 / SAY_EVERY_S + 1, "a line at once, then every ten seconds"
    assert it.said[0].startswith(
        "round 1: orders: waiting for the target to reach log 1000, it stands at applied"
    )
    standing = "0 of 1 tables read, 0 of 1 tables settled, 10,000 keys settled, 4,483 keys set aside"
    assert f"; {standing}; " in it.said[0]
    assert it.said[0].endswith("; 0 of 600 s")
    assert it.said[1].endswith("; 10 of 600 s")


def test_each_line_has_the_tables_read_and_settled_and_the_keys_as_they_stand_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one round, too: with forty tables the first round is nearly all of a verification."""
    it = judge(tmp_path)
    done = table(rounds=1, statuses={EQUAL: 70, "missing": 1})
    cut_off = table(unknown="it has no key")
    open_tables = [table() for _ in range(3)]
    found = [done, cut_off, *open_tables]
    it.live.watch.begins(2, found)

    def read(_: LiveComparison, one: TableProgress, *__: Any) -> object:
        it.clock.now += SAY_EVERY_S
        one.statuses, one.aside_keys = {EQUAL: 1_000}, 2
        return object()

    monkeypatch.setattr(LiveComparison, "_read_chunks", read)
    others: Any = SimpleNamespace(spark=None, read=lambda *_: [])
    assert len(it.live._reads(open_tables, tmp_path, others)) == 3
    it.live.watch.reading("others")
    assert [line.split("; ", 1)[1].rpartition("; ")[0] for line in it.said] == [
        "0 of 3 tables read, 2 of 5 tables settled, 71 keys settled, 0 keys set aside",
        "1 of 3 tables read, 2 of 5 tables settled, 1,071 keys settled, 2 keys set aside",
        "2 of 3 tables read, 2 of 5 tables settled, 2,071 keys settled, 4 keys set aside",
        "3 of 3 tables read, 2 of 5 tables settled, 3,071 keys settled, 6 keys set aside",
    ]


def test_groups_of_tables_that_are_read_together_are_counted_as_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = judge(tmp_path)
    tables = [table(), table(), table()]
    it.live.watch.begins(1, tables)
    nothing: Any = None
    reads = TableReads(*(nothing,) * 8, it.live.watch)
    groups = [lambda: ("reads", tables[:2]), lambda: ("reads", tables[2:])]
    monkeypatch.setattr(TableReads, "_groups", lambda *_: iter(groups))
    assert len(reads.read(tables, tmp_path)) == 2
    it.live.watch.reading("others")
    assert "; 3 of 3 tables read, " in it.said[0]


def test_a_wait_that_the_target_ends_in_time_is_no_matter_of_the_limit(tmp_path: Path) -> None:
    it = judge(tmp_path, lag=300)
    assert it.live._wait_for(["orders"])(it.live.source.position(), it.live.target.ledger).reached


def test_a_shorter_wait_gives_up_before_the_time_is_up(tmp_path: Path) -> None:
    it = judge(tmp_path, wait_s=60)
    assert not it.live._wait_for(["orders"])(it.live.source.position(), it.live.target.ledger).reached
    assert not it.live.watch.over()


def test_a_verification_without_a_limit_has_time(tmp_path: Path) -> None:
    clock = Clock()
    watch = Watch(clock=clock)
    clock.now += 1e9
    watch.check()
    watch.reading("orders")


def test_behind_the_last_target_read_nothing_is_broken_off() -> None:
    clock = Clock()
    watch, seen = Watch(1.0, clock=clock), list[str]()
    clock.now += 2
    watch.stepped(TARGET_READ, seen.append)
    with pytest.raises(TimeIsUp):
        watch.stepped(SOURCE_VIEW, seen.append)
    assert seen == [TARGET_READ, SOURCE_VIEW]


class HotKeys:
    """Rounds of a table of which 4,483 keys are written to in each: every round takes a minute and settles none."""

    def __init__(self, clock: Clock):
        self.clock, self.rounds = clock, 0

    def __call__(self, live: LiveComparison, number: int, tables: list[TableProgress]) -> Any:
        self.rounds = number
        self.clock.now += 60
        for each in tables:
            each.rounds, each.aside_keys, each.statuses = number, 4483, {EQUAL: 10_000}
        place = LogPlace(1, "1")
        done = Round(number, place, place, 1, "1", True, False, "the ledger has passed the source read", 60.0)
        return done, SourceSnapshot(place, place, {})


def test_keys_that_never_settle_are_unknown_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = judge(tmp_path, lag=7)
    monkeypatch.setattr(LiveComparison, "_exclude_undumped", lambda *_: None)
    hot = HotKeys(it.clock)
    monkeypatch.setattr(LiveComparison, "_round", lambda *given: hot(*given))
    began = it.clock.now
    (found,), done, _ = it.live.run([target()])
    assert WITHIN_S <= it.clock.now - began <= WITHIN_S + 60 + rounds._REST_S
    assert hot.rounds < it.live.limits.max_rounds, "the control: the time ended it, not the rounds"
    reason = not_judged(found) or not_settled(found, found.counts(), done)
    assert reason.startswith(
        "4,483 keys are unsettled: the 600 s given (--within) were over: the target stood at applied"
    )
    assert "the source's log at log" in reason
    assert "--within" in settled_by(found, done)
    assert table_verdict(found.counts(), reason) is Verdict.UNKNOWN


def test_time_that_is_up_before_anything_was_read_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = judge(tmp_path)
    monkeypatch.setattr(LiveComparison, "_exclude_undumped", lambda *_: None)
    it.clock.now += WITHIN_S
    (found,), done, snapshot = it.live.run([target()])
    assert (done, snapshot) == ([], None)
    assert not_judged(found).startswith("none of its rows were compared: the 600 s given")
    assert table_verdict(found.counts(), not_judged(found)) is Verdict.UNKNOWN
    assert "--within" in settled_by(found, done)


@pytest.mark.parametrize("aside", [0, 7])
def test_a_table_of_which_a_part_was_read_is_never_equal(aside: int) -> None:
    """All that was read is equal: nobody knows the rest."""
    found = table(rounds=1, cut=True, aside_keys=aside, statuses={EQUAL: 50}, late="the time was over")
    reason = not_judged(found)
    assert (
        reason
        == f"only a part of its rows was compared, {aside:,} keys of them are unsettled: the time was over"
    )
    assert table_verdict(found.counts(), reason) is Verdict.UNKNOWN
    assert found.open


def test_a_difference_that_was_proved_by_then_is_one() -> None:
    found = table(rounds=1, cut=True, statuses={EQUAL: 50, "missing": 1}, late="the time was over")
    assert table_verdict(found.counts(), not_judged(found)) is Verdict.DIFFERENT


def test_a_table_that_was_settled_in_time_is_equal(tmp_path: Path) -> None:
    """The control: the limit says nothing about tables that are done."""
    it, done = judge(tmp_path), table(rounds=2, statuses={EQUAL: 50})
    it.clock.now += WITHIN_S
    it.live._late([done])
    assert done.late == ""
    assert table_verdict(done.counts(), not_judged(done)) is Verdict.EQUAL


@dataclass(frozen=True)
class Half:
    bracket: Bracket


class Paired(Pairing):
    """A sweep over pieces that stand at rising places, beside a ledger that a wait moves by one place a poll."""

    def __init__(self, polls: int = 10**9):
        self.at, self.read, self.settled = 0, 0, list[tuple[int, int]]()
        self.polls = polls
        super().__init__(self.now, self.wait, lambda _: None, Views())

    def now(self) -> LedgerState:
        return LedgerState(1, 1, self.at, "", None)

    def wait(self, upto: LogPlace, ledger: Callable[[], LedgerState | None]) -> Waited:
        while (state := ledger()) is not None and state.order < upto.order:
            self.polls -= 1
            if self.polls < 0:
                raise TimeIsUp("over")
            for half in list(self._ahead._ahead) if self._ahead else ():  # what was asked for is read
                half.result()
            self.at += 1
        return Waited(True, "")

    def pieces(self, number: int) -> Iterator[Half]:
        for place in range(1, number + 1):
            self.read = place
            yield Half(Bracket(LogPlace(place * 10 - 1, ""), LogPlace(place * 10, "")))

    def all(self, number: int, ahead: int) -> None:
        def settle(half: Half) -> bool:
            self._view(self.now())
            self.settled.append((half.bracket.high.order, self.at))
            return True

        self._pass(self.pieces(number), settle, ahead)


def test_each_piece_is_settled_as_soon_as_the_ledger_has_passed_its_own_place() -> None:
    """With one wait for the highest of eight, the first piece would be read 70 places too late."""
    sweep = Paired()
    sweep.all(8, ahead=8)
    assert [place for place, _ in sweep.settled] == [10 * n for n in range(1, 9)]
    assert all(at == place for place, at in sweep.settled), "the target's read follows at once"


def test_the_source_is_read_further_while_the_target_is_waited_for() -> None:
    sweep = Paired()
    sweep.all(1, ahead=2)
    assert sweep.settled == [(10, 10)]
    sweep = Paired(polls=10)  # the first piece's wait
    with pytest.raises(TimeIsUp):
        sweep.all(100, ahead=2)
    assert 8 <= sweep.read <= pairing.AHEAD_WAITING, "it would have stopped behind the second piece"


def test_what_is_read_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "AHEAD_WAITING", 5)
    sweep = Paired(polls=10)
    with pytest.raises(TimeIsUp):
        sweep.all(100, ahead=2)
    assert sweep.read <= 6


def test_pieces_that_were_settled_before_the_time_was_up_count() -> None:
    sweep = Paired(polls=35)
    with pytest.raises(TimeIsUp):
        sweep.all(100, ahead=4)
    assert [place for place, _ in sweep.settled] == [10, 20, 30]


class Idle(Paired):
    """A target that stands still and lacks nothing: the log says so, which is dear to ask."""

    asked = 0

    def wait(self, upto: LogPlace, ledger: Callable[[], LedgerState | None]) -> Waited:
        ledger()
        self.asked += 1
        return Waited(True, "the log holds no change")


def test_a_log_that_holds_nothing_is_asked_once_for_pieces_read_meanwhile() -> None:
    sweep = Idle()
    sweep.all(64, ahead=64)
    assert len(sweep.settled) == 64
    assert sweep.asked < 64 / 4, "else each of them asks"
