"""A run says that it waits for executors, and that no longer."""

from __future__ import annotations

from migrator.run.apply.executor_watch import NOTE, watch_executors
from migrator.run.failure import Stopping
from migrator.run.progress import Progress


def test_the_note_stands_as_long_as_there_is_no_executor() -> None:
    progress, stopping = Progress(), Stopping()
    progress.set(note="something else")
    seen: list[str] = []
    counts = [None, 2, 0, 0, 1, 1]

    def executors() -> int | None:
        seen.append(progress.snapshot().note)
        if len(counts) == 1:
            stopping.request()
        return counts.pop(0)

    watch_executors(executors, progress, stopping, look_s=0.001)
    assert seen == ["something else", "something else", "something else", NOTE, NOTE, ""]
