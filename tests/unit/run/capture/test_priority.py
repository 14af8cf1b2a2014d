"""Capture's threads have a lower priority than the others of the process."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from migrator.run.capture.priority import NICENESS, at_lower_priority

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="niceness is counted by thread on Linux only")
MOST = 19


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_a_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join(10)


def test_a_thread_and_those_that_it_starts_give_way_and_no_other_does() -> None:
    before, seen = niceness(), []

    def work() -> None:
        seen.append(niceness())
        in_a_thread(lambda: seen.append(niceness()))

    in_a_thread(at_lower_priority(work))
    in_a_thread(lambda: seen.append(niceness()))  # the control: as others are
    assert seen == [min(before + NICENESS, MOST)] * 2 + [before]
    assert niceness() == before


def test_a_process_that_gives_way_already_goes_no_further_than_there_is() -> None:
    seen: list[int] = []
    in_a_thread(at_lower_priority(at_lower_priority(at_lower_priority(lambda: seen.append(niceness())))))
    assert seen == [MOST]
