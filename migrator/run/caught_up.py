"""The condition under which a run that was started with ``--until caught-up`` may end."""

from __future__ import annotations

from collections.abc import Callable

from migrator.model.position import Position
from migrator.run.progress import Snapshot


def caught_up(position: Callable[[], Position]) -> Callable[[Snapshot], bool]:
    """Holds once every dump is done, that of running requests included, every joined target is filled, rows
    set aside whose parent came are tried again, and what was committed by then is applied."""
    goal: tuple[Position, int] | None = None

    def reached(now: Snapshot) -> bool:
        nonlocal goal
        # A dump that begins once more is done in the target's eyes until the first segment of it is applied.
        dumping = not all(dump.done for dump in now.dumps)
        waiting = now.requests_left != 0 or bool(now.filling) or now.retrying
        behind = dumping or not now.applied_dump_complete or waiting
        # until something is captured, the source may be another than the one whose log was read
        if now.captured is None or now.applied is None or behind:
            return False
        if goal is None:
            goal = position(), now.captured_segment
        return now.applied >= goal[0] and now.applied_segment >= goal[1]

    return reached
