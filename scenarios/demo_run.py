"""``migrator run`` as the demo keeps it: a process of its own, started again whenever it is killed."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator.errors import MigratorError
from migrator.own_modules import python_m

_STOP_S = 60.0


class RunProcess:
    """``migrator run`` as a process of its own, started again as soon as it is killed."""

    def __init__(self, config: Path, show: Callable[[str], None]):
        self._config = config
        self._show = show
        self._stopping = threading.Event()
        self._failed: int | None = None
        self.restarts = 0
        self._process = self._started()
        self._keeper = threading.Thread(target=self._keep, name="run", daemon=True)
        self._keeper.start()

    def _started(self) -> subprocess.Popen[str]:
        command = [*python_m("migrator"), "run", "--plain", "--config", str(self._config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._show(f"migrator run, process {process.pid} (kill -9 it if you like: it goes on where it was)")
        return process

    def _keep(self) -> None:
        """Shows what it prints, and starts it again after a kill."""
        while True:
            for line in self._process.stdout or ():
                self._show(line.rstrip())
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if code != -signal.SIGKILL:
                self._failed = code
                return
            self.restarts += 1
            self._show("migrator run was killed; starting it again")
            self._process = self._started()

    def check(self) -> None:
        """Raises ``MigratorError`` when the run ended by itself."""
        if self._failed is not None:
            raise MigratorError(
                "migrator run ended early", cause=f"exit code {self._failed}; its last lines are above"
            )

    def stop(self) -> None:
        """Stops the run cleanly, as Ctrl-C would."""
        self._stopping.set()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._keeper.join(timeout=5)


@contextmanager
def running(config: Path, show: Callable[[str], None]) -> Iterator[RunProcess]:
    """A running ``migrator run`` that is stopped at the end of the block."""
    process = RunProcess(config, show)
    try:
        yield process
    finally:
        process.stop()
