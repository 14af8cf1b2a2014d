"""Each seeded trouble is told by page and metrics of one run: what is wrong, since when, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from migrator.cli.docs import documents
from migrator.core.watched.hour import after
from migrator.core.watched.verdict import dated, troubles, verdict
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import (
    DUMPING,
    FILLING,
    STANDBY,
    STANDING_BY,
    STARTING,
    Judged,
    Lag,
    Observation,
    Room,
    Server,
    Work,
)
from migrator.model.observed.trouble import ACT, LEVELS, LOOK
from migrator.model.position import Position
from migrator.model.retention import Retention
from tests.unit.observers.test_alerts import TROUBLES as SEEDED
from tests.unit.observers.test_alerts import alerts
from tests.unit.observers.test_declared import samples
from tests.unit.observers.troubles import BEGAN_US, TROUBLES, WELL, Trouble, moment_us

BOUNDS = Bounds()
OF_THE_PAGE_ALONE = {"VerdictsUnreadable"}


def named(seen: Observation, hour: Hour | None = None) -> list[str]:
    return [one.name for one in troubles(seen, hour or Hour(), BOUNDS)]


def test_each_seeded_trouble_is_among_them() -> None:
    assert {one.seeded for one in TROUBLES if one.seeded} == SEEDED


@pytest.mark.parametrize("one", TROUBLES, ids=[one.name for one in TROUBLES])
def test_the_verdict_answers_what_since_when_at_what_risk_and_what_to_do(one: Trouble) -> None:
    seen, hour = one.end()
    found = troubles(seen, hour, BOUNDS)
    worst = verdict(seen, hour, found)
    assert [trouble.name for trouble in found] == [one.name, *one.also], "no mere consequence"
    assert worst is found[0]
    said = " ".join((worst.what, worst.risk, worst.remedy))
    assert [words for words in one.words if words not in said] == []
    assert worst.since_us == moment_us(one.since_s)
    assert min(len(text) for text in (worst.what, worst.risk, worst.remedy)) > 15
    assert worst.document in documents()


@pytest.mark.parametrize("one", TROUBLES, ids=[one.name for one in TROUBLES])
def test_the_alerts_metric_says_the_same_of_the_same_observation(one: Trouble) -> None:
    seen, hour = one.end()
    name, value = one.metric
    found = [
        amount
        for metric, _, amount in samples(replace(seen, fallen=hour.fallen))
        if metric == f"migrator_{name}"
    ]
    assert found == [value]
    (alert,) = (alert for alert in alerts() if alert["alert"] == f"Migrator{one.name}")
    assert f"migrator_{name}" in alert["expr"]


@pytest.mark.parametrize("one", TROUBLES, ids=[one.name for one in TROUBLES])
def test_before_it_began_nothing_is_wrong(one: Trouble) -> None:
    before = replace(one, lasts_s=-10)
    seen, hour = before.end()
    assert troubles(seen, hour, BOUNDS) == ()
    assert verdict(seen, hour, ()).level == "well"


OTHERS: list[tuple[str, Observation]] = [
    ("SourceLogAlmostLost", replace(WELL, retention=Retention(Position(9, "9"), endangered="the slot is lost"))),
    ("SourceLogAlmostLost",
     replace(WELL, capture_lag=Lag(9, 50_000.0, 50_000.0, ""), lag=Lag(9, 50_000.0, 50_000.0, ""),
             retention=Retention(Position(9, "9"), expiry_s=86_400.0))),
    ("SourceKeepsMuchLog", replace(WELL, retention=Retention(Position(9, "9"), kept_bytes=30_000_000_000))),
    ("DiskFilling", replace(WELL, room=Room(0, 1, 900_000_000))),
    ("Lag", replace(WELL, lag=Lag(9, 90.0, 90.0, ""), capture_lag=Lag(9, 90.0, 90.0, ""))),
    ("LagUnknown", replace(WELL, started_us=1, lag=Lag(None, None, 9.0, "nothing is applied yet"))),
    ("DualReadWrong", replace(WELL, judged=Judged((), (("wrong", 3),), wrong_us=5))),
    ("NobodyLeads", replace(WELL, started_us=1, role=STANDBY, phase=STARTING)),
    ("Warned",
     replace(WELL, warnings=(("mirror", "it grows"), ("reading", "slowly")),
             warned_us=(("mirror", 7), ("reading", 9)))),
    ("VerdictsUnreadable", replace(WELL, judged=Judged(problem="it is torn"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "seen"), OTHERS)
def test_other_troubles_are_told_too(name: str, seen: Observation) -> None:
    assert name in named(seen)
    assert name not in named(WELL)
    (found,) = (one for one in troubles(seen, Hour(), BOUNDS) if one.name == name)
    assert found.document in documents()


@pytest.mark.parametrize(("name", "seen"), OTHERS)
def test_of_each_it_is_told_since_when(name: str, seen: Observation) -> None:
    if name == "SourceLogAlmostLost":
        seen = replace(seen, lag=replace(seen.lag, at_most_s=seen.lag.at_most_s or 9.0))
    hour = looked_back([replace(seen, at_us=seen.at_us + later_us) for later_us in range(0, 360 * S, 10 * S)])
    assert [one.since_us for one in troubles(seen, hour, BOUNDS) if one.name == name] != [None]


S = 1_000_000


def looked_back(moments: Iterable[Observation]) -> Hour:
    """The hour as an observer keeps it."""
    hour = Hour()
    for seen in moments:
        hour = after(hour, seen)
        hour = dated(hour, seen, troubles(seen, hour, BOUNDS))
    return hour


LONG: dict[str, Callable[[float], dict[str, Any]]] = {
    "DiskFilling": lambda _: {"room": Room(0, 1, 900_000_000)},
    "DiskFilling, by and by": lambda second: {"room": Room(0, 1, 30_000_000_000 - int(second * 3e6))},
    "NetworkSlow": lambda _: {"source": replace(WELL.source, answer_s=2.0)},
    "ErrorsRepeat": lambda second: {"work": Work(errors=((("ConnectionFailed",), second // 5),))},
    "LagUnknown": lambda _: {"lag": Lag(None, None, 9.0, "no answer")},
    "VerdictsUnreadable": lambda _: {"judged": Judged(problem="it is torn")},
}


@pytest.mark.parametrize("name", LONG)
def test_what_began_before_the_hour_began_then(name: str) -> None:
    """A pager's owner reads "since" as the begin, though the looks that told of it are gone."""
    moments = []
    for second in range(0, 3 * 3600, 10):
        late = second - 600
        changed = LONG[name](float(late)) if late >= 0 else {}
        moments.append(replace(WELL, at_us=BEGAN_US + second * S, **changed))
    (found,) = troubles(moments[-1], looked_back(moments), BOUNDS)
    assert found.name == name.partition(",")[0]
    assert found.since_us is not None
    assert BEGAN_US <= found.since_us <= BEGAN_US + (600 + 660) * S, "at the latest when it was first told"
    (short,) = troubles(moments[-1], replace(looked_back(moments), begun_us=()), BOUNDS)
    assert (short.since_us or 10**18) > BEGAN_US + 3600 * S, "the looks alone don't reach back to it"


def test_a_trouble_that_was_over_begins_again_when_it_comes_again() -> None:
    torn = [180 <= second < 360 or second >= 540 for second in range(0, 720, 10)]
    moments = [
        replace(WELL, at_us=BEGAN_US + place * 10 * S, judged=Judged(problem="it is torn" if bad else ""))
        for place, bad in enumerate(torn)
    ]
    (found,) = troubles(moments[-1], looked_back(moments), BOUNDS)
    assert found.since_us == BEGAN_US + 540 * S


def test_all_is_well_since_the_last_trouble_was_over() -> None:
    torn = Judged(problem="it is torn")
    moments = [
        replace(WELL, at_us=BEGAN_US + second * S, judged=torn if 300 <= second < 600 else Judged())
        for second in range(0, 9000, 10)
    ]
    for last, since_s in ((20, 0), (61, 600), (899, 600)):
        hour = looked_back(moments[: last + 1])
        assert verdict(moments[last], hour, ()).since_us == BEGAN_US + since_s * S
    hour = looked_back(moments[:60])
    assert verdict(moments[60], hour, ()).since_us == moments[60].at_us, "no look has told of it yet"


def test_another_phase_is_well_since_it_began() -> None:
    phases = [DUMPING] * 20 + [WELL.phase] * 500
    moments = [
        replace(WELL, at_us=BEGAN_US + place * 10 * S, phase=phase) for place, phase in enumerate(phases)
    ]
    assert verdict(moments[-1], looked_back(moments), ()).since_us == moments[20].at_us


def test_log_held_by_a_transaction_of_the_source_is_low_since_it_fell_below_the_bound() -> None:
    hour, seen = Hour(), WELL
    for place in range(20):
        kept = Retention(Position(9, "9"), left_bytes=100 - 5 * place, bound_bytes=100)
        seen = replace(WELL, at_us=BEGAN_US + place * 10_000_000, retention=kept, lag=Lag(0, 0.0, 0.3, ""))
        hour = after(hour, seen)
    (found,) = troubles(seen, hour, BOUNDS)
    assert (found.name, found.since_us) == ("SourceLogAlmostLost", BEGAN_US + 160_000_000)


def test_what_is_tried_again_is_what_stands_still() -> None:
    seen, hour = next(one for one in TROUBLES if one.name == "NothingApplied").end()
    note = "target: the target table t can't be seen; trying again"
    (found,) = troubles(replace(seen, note=note), hour, BOUNDS)
    assert note in found.what
    assert "Spark" not in found.what + found.remedy


def test_a_network_that_was_slow_is_so_since_the_first_slow_answer() -> None:
    hour, seen = Hour(), WELL
    for place in range(40):
        source = replace(WELL.source, answer_s=2.0 if 30 <= place < 37 else 0.002)
        seen = replace(WELL, at_us=BEGAN_US + place * 10_000_000, source=source)
        hour = after(hour, seen)
    (found,) = troubles(seen, hour, BOUNDS)
    assert (found.name, found.since_us) == ("NetworkSlow", BEGAN_US + 300_000_000)


def erring(counts: Sequence[int], down: Sequence[int]) -> tuple[Observation, Hour]:
    """An hour of looks with so many errors each; at the places of ``down`` the target gives no answer."""
    hour, seen = Hour(), WELL
    for place, count in enumerate(counts):
        target = Server(None, "gone", BEGAN_US) if place in down else WELL.target
        errors = ((("ConnectionFailed",), count),)
        at_us = BEGAN_US + place * 10_000_000
        seen = replace(WELL, at_us=at_us, target=target, work=Work(errors=errors))
        hour = after(hour, seen)
    return seen, hour


def test_errors_of_an_outage_are_no_trouble_beside_it_nor_behind_it() -> None:
    counts = [0] * 10 + list(range(4, 44, 4)) + [40] * 10
    seen, hour = erring(counts, range(10, 20))
    assert troubles(seen, hour, BOUNDS) == ()
    (found,) = troubles(*erring(counts, []), BOUNDS)
    assert (found.name, found.since_us) == ("ErrorsRepeat", BEGAN_US + 100_000_000)
    assert "40 errors" in found.what
    assert "none in the last 100 s" in found.what


def test_errors_of_a_server_that_comes_and_goes_are_told() -> None:
    (found,) = troubles(*erring(range(0, 120, 2), range(1, 59, 3)), BOUNDS)
    assert (found.name, "none in the last" in found.what) == ("ErrorsRepeat", False)


def test_every_name_is_that_of_an_alert() -> None:
    names = {one.name for one in TROUBLES} | {name for name, _ in OTHERS}
    assert {f"Migrator{name}" for name in names - OF_THE_PAGE_ALONE} <= {alert["alert"] for alert in alerts()}


def test_what_must_be_acted_on_comes_first() -> None:
    seen, hour = next(one for one in TROUBLES if one.name == "NetworkSlow").end()
    both = replace(seen, target=Server(None, "gone", seen.at_us), warnings=(("mirror", "it grows"),))
    found = troubles(both, hour, BOUNDS)
    assert [one.name for one in found] == ["TargetDown", "NetworkSlow", "Warned"]
    assert [one.level for one in found] == [ACT, LOOK, LOOK]


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (WELL, "well", "all that the source has committed is in the target"),
        (replace(WELL, lag=Lag(5, 3.0, 3.0, "")), "well", "3 s behind, and follows"),
        (replace(WELL, phase=STARTING), "wait", "it is starting"),
        (replace(WELL, phase=DUMPING), "well", "0 of 0 tables are dumped"),
        (replace(WELL, phase=FILLING), "well", "being filled"),
        (
            replace(WELL, role=STANDBY, phase=STANDING_BY, leader="process 1 on a"),
            "well",
            "process 1 on a leads",
        ),
        (replace(WELL, lag=Lag(None, None, None, "no answer")), "unknown", "the lag is unknown: no answer"),
    ],
)
def test_without_trouble_it_says_what_goes_on(seen: Observation, level: str, words: str) -> None:
    found = verdict(seen, Hour(), troubles(seen, Hour(), BOUNDS))
    assert (found.level, words in found.what) == (level, True), found
    assert found.since_us == BEGAN_US
    assert level in LEVELS


def test_a_server_that_was_not_asked_yet_is_not_down() -> None:
    assert named(replace(WELL, target=Server(), source=Server())) == []


def test_much_log_that_the_source_gives_up_in_time_fills_no_disk_because_of_us() -> None:
    kept = Retention(Position(9, "9"), kept_bytes=30_000_000_000, expiry_s=86_400.0)
    assert named(replace(WELL, retention=kept)) == []


@pytest.mark.parametrize(
    ("captured", "lost"),
    [(Lag(0, 0.0, 2.0, ""), False), (Lag(9, 50_000.0, 50_000.0, ""), True), (Lag(9, None, None, ""), True)],
)
def test_log_that_is_captured_may_go_however_far_the_target_is_behind(captured: Lag, lost: bool) -> None:
    """A target that was down for half of what the source keeps: nothing of the source's log was at risk."""
    kept = Retention(Position(9, "9"), expiry_s=86_400.0)
    seen = replace(WELL, lag=Lag(9, 50_000.0, 50_000.0, ""), capture_lag=captured, retention=kept)
    assert ("SourceLogAlmostLost" in named(seen)) == lost


BEYOND: list[tuple[str, Observation, Bounds, Bounds]] = [
    ("DiskFilling", replace(WELL, room=Room(0, 1, 5_000)), Bounds(least_disk_bytes=5_001),
     Bounds(least_disk_bytes=5_000)),
    ("SourceKeepsMuchLog", replace(WELL, retention=Retention(Position(9, "9"), kept_bytes=700)),
     Bounds(most_log_bytes=699), Bounds(most_log_bytes=700)),
    ("SourceLogAlmostLost", replace(WELL, retention=Retention(Position(9, "9"), 1, 40, 100)),
     Bounds(log_left_share=0.41), Bounds(log_left_share=0.4)),
    ("SourceLogAlmostLost",
     replace(WELL, lag=Lag(9, 1.0, 30.0, ""), capture_lag=Lag(9, 1.0, 30.0, ""),
             retention=Retention(Position(9, "9"), expiry_s=100.0)),
     Bounds(log_age_share=0.29), Bounds(log_age_share=0.3)),
    ("Lag", replace(WELL, lag=Lag(9, 9.0, 9.0, ""), capture_lag=Lag(9, 9.0, 9.0, "")),
     Bounds(max_lag_s=8.0), Bounds(max_lag_s=9.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "seen", "beyond", "within"), BEYOND)
def test_a_bound_is_where_the_settings_have_it(
    name: str, seen: Observation, beyond: Bounds, within: Bounds
) -> None:
    assert [one.name for one in troubles(seen, Hour(), beyond)] == [name]
    assert troubles(seen, Hour(), within) == ()


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("HotTable", Bounds(hot_share=0.99, max_lag_s=1e9)),
        ("NothingApplied", Bounds(stalled_s=1e6, max_lag_s=1e9)),
        ("NetworkSlow", Bounds(slow_source_s=0.91)),
    ],
)
def test_a_bound_over_time_is_where_the_settings_have_it(name: str, within: Bounds) -> None:
    seen, hour = next(one for one in TROUBLES if one.name == name).end()
    assert name in [one.name for one in troubles(seen, hour, BOUNDS)]
    assert name not in [one.name for one in troubles(seen, hour, within)]
