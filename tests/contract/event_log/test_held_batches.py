"""Batches that are held up to their doubts, in every event log (see ``core.hold``)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrator.model.requests.request import Doubt
from tests.contract.event_log.eventlog_content import inserted, read
from tests.contract.event_log.eventlog_under_test import EventLogUnderTest
from tests.contract.event_log.test_eventlog import Files, Memory


@pytest.fixture(params=["files", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> EventLogUnderTest:
    return Files(tmp_path, None) if request.param == "files" else Memory()


def test_a_batch_goes_on_up_to_the_doubts(log: EventLogUnderTest) -> None:
    writer, doubts = log.writer(1), (Doubt("made", (("5",),)),)
    writer.append(inserted(1, 1))
    writer.append(replace(inserted(2, 2), begins_batch=True, continues=True))
    writer.append(replace(inserted(3, 3), continues=True))
    assert read(log.reader(), 0).last == 1
    assert log.reader().read(1, 1, 0) is None
    writer.append(replace(inserted(4, 4), doubts=doubts))
    batch = read(log.reader(), 1, 1)
    assert (batch.first, batch.last, batch.doubts) == (2, 4, doubts)
    assert read(log.reader(), 0, 1).doubts == ()


def test_a_batch_whose_doubts_never_came_ends_where_another_begins(log: EventLogUnderTest) -> None:
    writer = log.writer(1)
    writer.append(replace(inserted(1, 1), begins_batch=True, continues=True))
    writer.append(replace(inserted(2, 2), begins_batch=True))
    assert [read(log.reader(), after).last for after in (0, 1)] == [1, 2]
