"""``migrator run`` as a process group of its own: started, killed, started again, its output kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrator.errors import MigratorError
from migrator.own_modules import python_m

_STOP_TIMEOUT_S = 60.0
_GONE_TIMEOUT_S = 10.0
_ERROR = re.compile(r"^error: (?!this is a fault of the tool).*(?:\n  .*)*", re.MULTILINE)
"""A named error; a traceback with an apology behind it names nothing."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one process: exit code (negative: a signal), and its named error if it printed one."""

    code: int
    error: str

    @property
    def killed(self) -> bool:
        """Returns whether SIGKILL ended the process: a crash, after which it is started again."""
        return self.code == -signal.SIGKILL


class PipelineProcess:
    """A ``Pipeline``. ``start`` while a process exists (a stopped one, say) starts a stand-in, which counts then.

    Args:
        config: the project's ``migration.toml``.
        log: file that gets the output of all processes, one after the other.
        environment: variables over ours, asked for at every start.
        mutant: name of a broken variant to run instead of the product, or "".
        standby: whether it runs with ``--ha``.
    """

    def __init__(
        self,
        config: Path,
        log: Path,
        environment: Callable[[], Mapping[str, str]],
        mutant: str = "",
        standby: bool = False,
    ):
        program = [*python_m("scenarios.mutants"), mutant] if mutant else python_m("migrator")
        self._command = [*program, "run", "--plain", "--config", str(config)]
        self._command += ["--ha"] if standby else []
        self._log = log
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self._begins_at_bytes = 0
        self.starts = 0

    @property
    def pid(self) -> int:
        """The process now. Raises ``MigratorError`` before the first start."""
        return self._current().pid

    @property
    def running(self) -> bool:
        """Returns whether the process exists and hasn't ended."""
        return bool(self._processes) and self._current().poll() is None

    def start(self) -> None:
        """Starts it (again)."""
        with self._log.open("ab") as log:
            self._begins_at_bytes = log.tell()
            self.starts += 1
            log.write(f"--- process {self.starts}: {' '.join(self._command[1:])}\n".encode())
            log.flush()
            self._processes.append(
                subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1", **self._environment()},
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        """Stops it as Ctrl-C would; kills it when it doesn't end in time."""
        if not self.running:
            return
        process = self._current()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the process and all it has started. Python workers have groups of their own, so: the
        session."""
        if self._processes:
            _kill_session(self._current())

    def close(self) -> None:
        """Kills whatever is left of all processes."""
        for process in self._processes:
            _kill_session(process)

    def exited(self) -> Exit | None:
        """Tells how the present process ended; None while it runs."""
        code = self._current().poll()
        if code is None:
            return None
        found = _ERROR.findall(self.output())
        return Exit(code, _one_line(found[-1]) if found else "")

    def output(self) -> str:
        """Returns the text that the present process has printed."""
        with self._log.open("rb") as log:
            log.seek(self._begins_at_bytes)
            return log.read().decode(errors="replace")

    def _current(self) -> subprocess.Popen[bytes]:
        if not self._processes:
            raise MigratorError("the pipeline was never started")
        return self._processes[-1]


def _one_line(error: str) -> str:
    first, *rest = error.removeprefix("error: ").splitlines()
    return "; ".join([first, *(line.strip() for line in rest)])


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Ends every process of a session, again until none is left: one may be forking right now."""
    deadline = time.monotonic() + _GONE_TIMEOUT_S
    while members := _session(process.pid):
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it ended by itself
        process.poll()
        if time.monotonic() > deadline:
            raise MigratorError("processes of the pipeline don't end", where=", ".join(map(str, members)))
        time.sleep(0.01)  # nothing to wait for: the kernel tells only a process's parent that it is gone
    process.wait()


def _session(leader: int) -> list[int]:
    """Living processes of a session (proc(5): field 6 of stat), which no child can leave unasked."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found
