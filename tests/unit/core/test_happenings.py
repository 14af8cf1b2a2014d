"""The events between two looks at a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.happenings import Outline, happened
from migrator.model.observed.happening import EVENTS
from migrator.model.observed.observation import Lag

STREAMING = Outline(phase="streaming", epoch=3, lag=Lag(0, 0.0, 1.0, ""))
LATE, LATER = Lag(7, 61.0, 61.0, ""), Lag(7, 90.0, 90.0, "")


def ids(before: Outline, after: Outline) -> list[str]:
    found = list(happened(before, after, 60.0))
    assert {one.event for one in found} <= EVENTS.keys()
    assert all(one.words for one in found)
    return [one.event for one in found]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (Outline("starting"), replace(STREAMING, lag=Lag()), ["run.led", "run.phase"]),
        (Outline("standing by", stood_by=True), replace(STREAMING, lag=Lag()), ["run.took-over", "run.phase"]),
        (STREAMING, replace(STREAMING, note="it waits"), ["run.note"]),
        (replace(STREAMING, note="it waits"), STREAMING, []),
        (STREAMING, replace(STREAMING, warnings={"disk": "full"}), ["run.warning"]),
        (replace(STREAMING, warnings={"a": "full"}), replace(STREAMING, warnings={"a": "fuller"}), ["run.warning"]),
        (replace(STREAMING, warnings={"disk": "full"}), STREAMING, ["run.warning-over"]),
        (STREAMING, replace(STREAMING, errors={"ConnectionFailed": 1}), ["run.error"]),
        (replace(STREAMING, errors={"ConnectionFailed": 1}), replace(STREAMING, errors={"ConnectionFailed": 1}), []),
        (STREAMING, replace(STREAMING, lag=LATE), ["lag.beyond"]),
        (replace(STREAMING, lag=LATE), replace(STREAMING, lag=LATER), []),
        (replace(STREAMING, lag=LATE), STREAMING, ["lag.within"]),
        (STREAMING, replace(STREAMING, lag=Lag()), ["lag.unknown"]),
        (replace(STREAMING, lag=LATE), replace(STREAMING, lag=Lag()), ["lag.unknown"]),
        (STREAMING, replace(STREAMING, different=frozenset(["person"])), ["rows.different"]),
        (replace(STREAMING, different=frozenset(["person"])), STREAMING, ["rows.no-longer-different"]),
        (STREAMING, replace(STREAMING, endangered="it goes"), ["source.log-endangered"]),
    ],
)  # fmt: skip
def test_what_differs_is_an_event_once(before: Outline, after: Outline, wanted: list[str]) -> None:
    assert ids(before, after) == wanted
    assert ids(after, after) == []
