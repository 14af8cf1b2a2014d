"""How capture begins: a source that can't be read yet is tried again, any other problem ends it."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import ConnectionFailed, MigratorError, SourceError
from migrator.model.limits import CaptureLimits
from migrator.run.capture import source_threads
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

BUSY = ConnectionFailed("the replication slot is in use by another session", retryable=True)


class RefusingLog:
    """A log reader whose starts fail, one after the other; the last way of failing repeats."""

    def __init__(self, *failures: MigratorError):
        self.failures = list(failures)
        self.starts = 0

    def start(self, after: Any) -> Any:
        self.starts += 1
        raise self.failures[min(self.starts, len(self.failures)) - 1]

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_threads, "RETRY_WAITS_S", (0.01,))


def capture(log: RefusingLog, progress: Progress) -> CaptureLoop:
    ports = SourcePorts(cast(Any, lambda: log), cast(Any, None), None)
    return CaptureLoop(
        ports,
        Attempt({}, None, CaptureLimits(), "1-a"),
        cast(Any, None),
        MemoryRequests(),
        MemoryRoom(MemoryEventLog()),
        progress,
    )


def test_a_slot_that_a_dead_leader_still_holds_is_waited_for() -> None:
    log, progress = RefusingLog(BUSY, BUSY, SourceError("a problem that stays")), Progress()
    with pytest.raises(SourceError, match="stays"):
        capture(log, progress).run(Stopping())
    assert log.starts == 3
    assert "in use by another session" in progress.snapshot().note


def test_a_stop_ends_the_waiting() -> None:
    log, stopping = RefusingLog(BUSY), Stopping()
    thread = threading.Thread(target=lambda: capture(log, Progress()).run(stopping))
    thread.start()
    while log.starts < 2:
        assert thread.is_alive()
    stopping.request()
    thread.join(10)
    assert not thread.is_alive()
