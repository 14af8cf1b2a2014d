"""Named points of the loops, where tests and scenarios place their faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

Step = Callable[[str], None]
"""Called with the name of the point that has been reached, e.g. ``apply.mapped``."""

CRASH_VARIABLE = "MIGRATOR_CRASH_AT"


def no_step(name: str) -> None:
    """Does nothing: the step hook of a run without faults."""


def crash_step(environment: Mapping[str, str]) -> Step:
    """A hook that kills the process with SIGKILL at ``MIGRATOR_CRASH_AT=<point>[:<n-th time>]``, else nothing."""
    point, _, count = environment.get(CRASH_VARIABLE, "").partition(":")
    if not point:
        return no_step
    left = int(count or 1)

    def step(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return step
