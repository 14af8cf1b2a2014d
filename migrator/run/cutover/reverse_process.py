"""The stream of the way back: a process of its own beside the leader, which ends with it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from migrator.own_modules import python_m

_STOP_S = 20.0
_PR_SET_PDEATHSIG = 1


class ReverseProcess:
    """Keeps ``migrator run --reverse`` running.

    Args:
        config: the project's file.
        log: gets what it prints.
        options: further words of its command.
    """

    def __init__(self, config: Path, log: Path, options: Sequence[str] = ()):
        self._command = [
            *python_m("migrator"),
            "run",
            "--reverse",
            "--plain",
            "--config",
            str(config),
        ]
        self._command += options
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> str:
        """Starts it where it isn't running; describes its end where it has ended since the last call, else empty."""
        ended = ""
        if self._process is not None and self._process.poll() is not None:
            ended = f"the way back ended with code {self._process.returncode}, see {self._log}"
            self._process = None
        if self._process is None:
            self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # a Ctrl-C is for the leader, which then ends it
                    preexec_fn=_ends_with_parent,
                )
        return ended

    def end(self) -> None:
        """Stops it. Safe to call twice."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ends_with_parent() -> None:
    """Has the kernel end this process with its parent, however that one ends (Linux). Elsewhere the lease does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
