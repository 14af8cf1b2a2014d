"""The words of a run to whoever supervises it; to nobody, where nobody listens.

systemd listens at the address in ``NOTIFY_SOCKET`` (``sd_notify(3)``). Container engines and Kubernetes look at the
age of a file, which ``MIGRATOR_ALIVE_FILE`` names. A run says that it is ready, again and again that it is alive, and
that it stops. Its status is what ``systemctl status`` shows. Being alive means that Python runs and that the counters
of the run can be read: that it gets on is for ``status`` to say: a slow server is no reason to kill a run.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from migrator.run.failure import Stopping
from migrator.run.progress import Progress, Snapshot

_OFTEN_S = 15.0
"""Seconds between two words where no watchdog asks for more."""


class ServiceManager:
    """Tells whoever supervises a run how it is.

    Args:
        environment: as the manager has set it. Its address is taken out: a process that the run starts must not speak
            for the run.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ):
        self._address = environment.pop("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        watchdog_us = environment.pop("WATCHDOG_USEC", "")
        meant = environment.pop("WATCHDOG_PID", "") in ("", str(os.getpid()))
        watched = watchdog_us.isdecimal() and meant and int(watchdog_us) > 0
        self._file = Path(file) if (file := environment.pop("MIGRATOR_ALIVE_FILE", "")) else None
        self._every_s = min(int(watchdog_us) / 2e6, _OFTEN_S) if watched else _OFTEN_S

    def listens(self) -> bool:
        """Tells whether there is a manager that wants to know."""
        return bool(self._address) or self._file is not None

    def follow(self, progress: Progress, stopping: Stopping) -> None:
        """Says that the run is ready, then how it is, until a stop is requested. Raises nothing."""
        self._say("READY=1")
        self._alive(progress)
        while not stopping.wait(self._every_s):
            self._alive(progress)
        self._say("STOPPING=1\nSTATUS=stopping after the batch under way")

    def _alive(self, progress: Progress) -> None:
        said = status(progress.snapshot())
        self._say(f"STATUS={said}\nWATCHDOG=1")
        if self._file is not None:
            with suppress(OSError):
                self._file.write_text(f"{said}\n")

    def _say(self, text: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.sendto(text.encode(), self._address)


def status(now: Snapshot) -> str:
    """One line of how a run is."""
    said = f"{now.applied_changes:,} changes applied, {sum(dump.rows for dump in now.dumps):,} rows dumped"
    return " ".join(f"{said}; {now.note}".split()) if now.note else said
