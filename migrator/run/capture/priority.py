"""Capture gives way to apply where both want the same processor.

A long backlog is captured sooner than it is applied: what capture gets done first waits in the event log all the
same, while apply, one step after the other, is what the target waits for. On few cores it was the other way round:
capture took its share of them, apply the rest, and when capture was through, apply was alone and left a core idle.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

NICENESS = 10
"""Niceness added to a thread that gives way: it gets about a tenth of the share of one that doesn't, if there is one.
Cores that nobody else wants are had all the same."""
_MOST = 19


def at_lower_priority(work: Callable[[], None]) -> Callable[[], None]:
    """The same work, for a thread of its own: it and every thread that it starts have a lower priority than others.

    Linux alone counts niceness by thread (nice(1) is one number for all of a process by POSIX, not there: see
    ``sched(7)``); elsewhere the whole process would be slowed down, so nothing is done. There is no way back
    for the
    thread: raising a priority takes a privilege.
    """

    def run() -> None:
        if sys.platform == "linux":
            thread = threading.get_native_id()
            with suppress(OSError):  # a sandbox may forbid it, and it is about speed alone
                own = os.getpriority(os.PRIO_PROCESS, thread)
                os.setpriority(os.PRIO_PROCESS, thread, min(own + NICENESS, _MOST))
        work()

    return run
