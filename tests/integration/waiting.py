"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

DEADLINE_S = 60.0


def await_true(
    condition: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S, every_s: float = 0.02
) -> None:
    """Returns once it holds; fails the test naming ``what`` if it doesn't in time. ``every_s``: between two looks."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        threading.Event().wait(every_s)
