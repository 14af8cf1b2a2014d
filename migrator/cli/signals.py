"""How commands that go on until told to stop are told."""

from __future__ import annotations

import signal
from types import FrameType

from migrator.run.failure import Stopping


def stop_on_signals(stopping: Stopping) -> None:
    """The first Ctrl-C or SIGTERM asks for a clean stop; the second one kills the process."""

    def stop(number: int, _: FrameType | None) -> None:
        stopping.request()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
