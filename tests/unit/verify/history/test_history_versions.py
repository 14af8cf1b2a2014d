"""The checkers of versions, D1 to D5: time travel, order of sessions, lost, invented and doubled writes."""

from __future__ import annotations

from tests.histories.tiny import Tiny, started, two_versions
from verify.history.history import CHUNK, DELETE, FAILED, LOG, OK, TrackedTable
from verify.history.result import Outcome

# -- D1 -----------------------------------------------------------------------------------------------------------


def test_a_target_that_goes_back_travels_in_time() -> None:
    tiny, _, first, second = two_versions()
    tiny.commit(second)
    tiny.commit(first)
    result = tiny.judged("D1")
    assert result.outcome is Outcome.VIOLATED
    assert result.witnesses[0].headline == "register 17: version 1 at commit 3 after version 2 at commit 2"


def test_a_late_chunk_row_is_named_with_what_overtook_it() -> None:
    tiny, old, first, second = two_versions()
    tiny.deliver(LOG, first, position=1)
    tiny.deliver(LOG, second)
    tiny.commit(second)
    tiny.deliver(CHUNK, old)
    tiny.commit(old)
    result = tiny.judged("D1")
    assert result.violations == 2  # one delivered, one shown
    case = result.witnesses[0]
    assert case.headline == "register 17: version 0 at commit 3 after version 2 at commit 2"
    assert case.because == (
        "version 2 was committed by session 1 number 2 at log position 2",
        "version 2 from the log (delivery 3, segment 3) was delivered",
        "version 0 from a chunk (delivery 4, segment 4) came later and is what the target shows",
        "commit 3 says it holds position 2, where the source had version 2; the target has version 0",
    )
    guilty = {(moment.track, moment.place) for moment in case.timeline if moment.guilty}
    assert guilty == {("target", 2), ("target", 3), ("chunk", 4), ("log", 2), ("log", 3)}
    assert result.witnesses[1].headline == (
        "register 17: version 0 delivered by a chunk in segment 4 after version 2 in segment 3"
    )


def test_a_chunk_row_may_stand_anywhere_in_its_segment() -> None:
    tiny, old, first, second = two_versions()
    tiny.deliver(LOG, first, position=1)
    segment = tiny.segment
    tiny.deliver(LOG, second, segment=segment)
    tiny.deliver(CHUNK, first, segment=segment)
    assert tiny.judged("D1").outcome is Outcome.HOLDS
    tiny.deliver(CHUNK, old, segment=segment + 1)
    assert tiny.judged("D1").outcome is Outcome.VIOLATED


def test_log_rows_in_the_wrong_order_within_a_segment() -> None:
    tiny, _, first, second = two_versions()
    tiny.deliver(LOG, second)
    tiny.deliver(LOG, first, segment=tiny.segment, position=1)
    assert tiny.judged("D1").outcome is Outcome.VIOLATED


# -- D2 -----------------------------------------------------------------------------------------------------------


def test_a_later_write_without_the_earlier_one() -> None:
    tiny = started(k1=None, k2=None)
    first, second = tiny.row("1", 4, 1), tiny.row("2", 4, 2)
    tiny.write(first)
    tiny.write(second)
    tiny.commit(second)
    result = tiny.judged("D2")
    assert result.outcome is Outcome.VIOLATED
    assert result.witnesses[0].headline == (
        "session 4: commit 2 shows its number 2 (register 2) without its earlier number 1 (register 1)"
    )
    tiny.records["changes"].append({"commit": 2, **first})
    assert tiny.judged("D2").outcome is Outcome.HOLDS


def test_a_successor_stands_for_an_overwritten_write() -> None:
    tiny = started(k1=None, k2=None)
    first, second, over = tiny.row("1", 4, 1), tiny.row("2", 4, 2), tiny.row("1", 5, 1)
    for each in (first, second, over):
        tiny.write(each)
    tiny.commit(second, over)
    assert tiny.judged("D2").outcome is Outcome.HOLDS
    tiny.records["changes"].pop()
    assert tiny.judged("D2").outcome is Outcome.VIOLATED


def test_keys_that_are_not_dumped_yet_are_free() -> None:
    tiny = Tiny(k1=None, k5=None)
    first, second = tiny.row("5", 4, 1), tiny.row("1", 4, 2)
    tiny.write(first)
    tiny.write(second)
    tiny.deliver(CHUNK, second)
    tiny.commit(second, covered="1")
    assert tiny.violated() == set()
    assert tiny.judged("D2").outcome is Outcome.UNKNOWN
    tiny.commit(covered="10")  # covers 5, by number and not by text
    assert {"D2", "D3", "D6"} <= tiny.violated()


# -- D3 -----------------------------------------------------------------------------------------------------------


def test_a_position_before_its_data_loses_the_update() -> None:
    tiny, _, first, _ = two_versions()
    tiny.commit(first)
    result = tiny.judged("D3")
    assert result.witnesses[0].headline == (
        "register 17: version 1 at commit 2, whose position 2 includes version 2"
    )
    assert result.witnesses[0].because[1] == "version 2 was never delivered"


def test_an_acknowledged_write_must_be_in_the_log() -> None:
    tiny = started(k1=None)
    tiny.records["operations"].append({**tiny.row("1", 3, 9), "outcome": OK})
    result = tiny.judged("D3")
    assert result.witnesses[0].headline == (
        "register 1: the acknowledged put by session 3 number 9 is not in the source log"
    )


def test_after_the_drain_everything_must_have_been_read() -> None:
    tiny, _, first, _ = two_versions()
    tiny.commit(first, position=1)
    assert tiny.judged("D3").witnesses[0].headline == "the last commit is at position 1, the log ends at 2"
    tiny.records.drained = False
    assert tiny.judged("D3").outcome is Outcome.HOLDS


# -- D4 -----------------------------------------------------------------------------------------------------------


def test_a_chunk_row_that_nobody_committed() -> None:
    tiny = started(k1=None)
    tiny.deliver(CHUNK, tiny.row("1", 7, 7))
    assert tiny.judged("D4").witnesses[0].headline == (
        "register 1: a chunk delivered a row of session 7 number 7 in segment 2, which nobody committed"
    )


def test_a_rogue_row_is_visible_and_nobody_committed_it() -> None:
    tiny = started(k1=None)
    tiny.rogue(tiny.row("3", 8, 1))
    result = tiny.judged("D4")
    assert result.witnesses[0].headline == (
        "register 3: session 8 number 1 at a rogue write after commit 1, which nobody committed"
    )
    assert tiny.violated() >= {"D4", "D6"}


def test_a_deleted_key_rises_again() -> None:
    tiny, _, first, second = two_versions()
    tiny.write({**second, "kind": DELETE})
    tiny.commit({**second, "kind": DELETE})
    assert tiny.violated() == set()
    tiny.commit(first)
    result = tiny.judged("D4")
    assert result.witnesses[0].headline == (
        "register 17: session 1 number 1 at commit 3, although deleted at position 3"
    )
    assert {"D1", "D4", "D6"} <= tiny.violated()


def test_a_deletion_that_never_came() -> None:
    tiny, _, _, second = two_versions()
    tiny.commit(second)
    tiny.write({**second, "kind": DELETE})
    tiny.commit()
    assert tiny.violated() == {"D3", "D4", "D6"}


def test_data_ahead_of_the_position() -> None:
    tiny, _, _, second = two_versions()
    tiny.commit(second, position=1)
    assert tiny.judged("D4").witnesses[0].headline == (
        "register 17: session 1 number 2 at commit 2 (position 1), committed only at 2"
    )


def test_a_failed_operation_in_the_log_makes_the_outcome_unknown() -> None:
    tiny = started(k1=None)
    change = tiny.row("1", 3, 1)
    tiny.write(change, outcome=FAILED)
    tiny.commit(change)
    result = tiny.judged("D4")
    assert result.outcome is Outcome.UNKNOWN
    assert "e.g. the put of register 1 by session 3 number 1" in result.reason
    tiny.records["operations"].append({**change, "outcome": OK})  # it was tried again
    assert tiny.judged("D4").outcome is Outcome.HOLDS


# -- D5 -----------------------------------------------------------------------------------------------------------


def test_an_increment_applied_twice() -> None:
    tiny = Tiny(TrackedTable("counter", fold=True), k1=10)
    tiny.write(tiny.row("1", 1, 1, 15))
    tiny.commit(tiny.row("1", 1, 1, 20))
    result = tiny.judged("D5")
    assert result.witnesses[0].headline == (
        "counter 1: the fold is 20 at commit 1, the log's comes to 15 at its position 1"
    )
    assert tiny.violated() == {"D5", "D6"}


def test_position_apart_from_data_shows_while_it_lasts() -> None:
    tiny = Tiny(TrackedTable("counter", fold=True), k1=10)
    tiny.commit(tiny.row("1", 0, 0, 10), position=0)
    change = tiny.row("1", 1, 1, 15)
    tiny.write(change)
    tiny.rogue(change)  # a transaction of its own, the ledger moves in the next one
    tiny.commit()
    assert tiny.violated() == {"D4", "D5", "D6"}
