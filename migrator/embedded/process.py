"""One server process: an unprivileged user, a log file, a deadline for being ready, and a certain end."""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrator.errors import MigratorError

LOCALHOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)
_PORT_TRIES = 200
_POLL_S = 0.05
_LOG_TAIL_LINES = 15
_SUPERVISOR = Path(__file__).with_name("supervise.py")


class HeldPort:
    """A TCP port of 127.0.0.1 that is nobody else's as long as this object lives.

    Between finding a free port and a server's listening on it lie seconds in which another test run may find
    the same one. So it stays bound here, without listening: a server, which sets ``SO_REUSEADDR``, may listen
    on it beside us (socket(7)), while one who looks for a free port can't bind it, also when the server is
    down for a while.

    Taken from below Linux's ephemeral range (32768 and up): an outgoing connection can then never occupy the port
    while a killed server waits for its restart.

    Attributes: ``number``.
    Raises MigratorError if no port of the range can be bound.
    """

    def __init__(self) -> None:
        for number in random.SystemRandom().sample(_PORTS, _PORT_TRIES):
            probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                probe.bind((LOCALHOST, number))
            except OSError:
                probe.close()
                continue
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.number = number
            self._bound = probe
            return
        raise MigratorError(
            "no free TCP port was found",
            where=f"{LOCALHOST}, {_PORT_TRIES} ports tried in {_PORTS.start}-{_PORTS.stop - 1}",
            remedy="stop servers that are no longer needed",
        )


def unprivileged_user(preferred: str = "nobody") -> str | None:
    """The user a database server is to run as: ``preferred`` if we are root (which it refuses), or None."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(preferred).pw_name
    except KeyError:
        raise MigratorError(
            f"the user {preferred!r} does not exist, and a database server refuses to run as root",
            remedy=f"create it (useradd --system {preferred}), or run as an ordinary user",
        ) from None


def make_server_directory(directory: Path, user: str | None) -> Path:
    """Create ``directory`` for ``user`` alone (mode 0700) and return its absolute path.

    Raises MigratorError when a folder above it can't be entered by that user: the server could only fail with
    a message that does not name the folder.
    """
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    if user is not None:
        blocked = _first_unreachable(directory.parent, user)
        if blocked is not None:
            raise MigratorError(
                f"the server's user {user!r} can't enter a folder above its data directory",
                where=str(blocked),
                cause=f"the server for {directory} can't run as root",
                remedy="choose a directory under /tmp or /var/tmp, or run as an ordinary user",
            )
        entry = pwd.getpwnam(user)
        os.chown(directory, entry.pw_uid, entry.pw_gid)
    directory.chmod(0o700)
    return directory


def is_reachable(path: Path, user: str | None) -> bool:
    """Tells whether ``user`` (None: ourselves) can enter every folder down to ``path`` and ``path`` itself."""
    return user is None or _first_unreachable(path, user) is None


def _first_unreachable(path: Path, user: str) -> Path | None:
    entry = pwd.getpwnam(user)
    resolved = path.resolve()
    for folder in [*reversed(resolved.parents), resolved]:
        status = folder.stat()
        if status.st_uid == entry.pw_uid:
            needed = stat.S_IXUSR
        elif status.st_gid == entry.pw_gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not status.st_mode & needed:
            return folder
    return None


@contextmanager
def scratch_directory(prefix: str = "migrator-") -> Iterator[Path]:
    """A temporary folder that an unprivileged server may enter (mode 0711), removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_as(
    command: Sequence[str], user: str | None, *, directory: Path, environment: Mapping[str, str]
) -> str:
    """Run a short setup command (initdb and its like) as ``user`` and return its output.

    Raises MigratorError with the command's output if it fails.
    """
    group = pwd.getpwnam(user).pw_gid if user else None
    done = subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=dict(environment),
        user=user,
        group=group,
        extra_groups=[] if user else None,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise MigratorError(
            f"{Path(command[0]).name} failed with exit code {done.returncode}",
            where=str(directory),
            cause="\n".join(done.stdout.splitlines()[-_LOG_TAIL_LINES:]),
            remedy="see the output above",
        )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Program:
    """A server's program, and how it is run.

    Attributes:
        command: program and arguments.
        user: the user to run as, or None for our own.
        directory: working directory; must exist and be reachable by ``user``.
        log: file that gets the server's output, appended.
        environment: the server's whole environment; None for a minimal one.
    """

    command: Sequence[str]
    user: str | None
    directory: Path
    log: Path
    environment: Mapping[str, str] | None = None


class ServerProcess:
    """A server as a supervised child process; it never outlives this process, however either of them ends.

    Args:
        name: what the server is called in error messages.
        program: what is run.
        ready: asked repeatedly until it returns an empty string; any other answer is the reason it is not
            ready yet.
        stop_signal: the signal for a quick, clean shutdown.
        start_timeout_s, stop_timeout_s: deadlines; after the second the server is killed.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        *,
        ready: Callable[[], str],
        stop_signal: signal.Signals = signal.SIGTERM,
        start_timeout_s: float = 60.0,
        stop_timeout_s: float = 30.0,
    ):
        self.name = name
        self.command = list(program.command)
        self.log = program.log
        self._user = program.user
        self._directory = program.directory
        self._ready = ready
        self._stop_signal = stop_signal
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        environment = program.environment
        self._environment = dict(environment if environment is not None else plain_environment())
        self._supervisor: subprocess.Popen[str] | None = None
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """The server's process id. Raises MigratorError if it has not been started."""
        if self._pid is None:
            raise MigratorError(f"{self.name} is not running")
        return self._pid

    @property
    def running(self) -> bool:
        """Tells whether the server's process exists (ready or not)."""
        return self._supervisor is not None and self._supervisor.poll() is None

    def start(self) -> None:
        """Start the server and return once it is ready.

        Raises MigratorError with the end of its log if it exits or is not ready in time; nothing is left
        running.
        """
        if self.running:
            raise MigratorError(f"{self.name} is already running", where=f"process {self.pid}")
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), json.dumps(self._order())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C in the terminal is for us; we decide when the server stops
        )
        try:
            self._pid = self._read_pid(self._supervisor)
            self._await_ready()
        except BaseException:  # Ctrl-C too: a server that start() did not hand over must not be left running
            self.kill()
            raise

    def _order(self) -> dict[str, object]:
        return {
            "command": self.command,
            "user": self._user,
            "group": pwd.getpwnam(self._user).pw_gid if self._user else None,
            "directory": str(self._directory),
            "environment": self._environment,
            "log": str(self.log),
            "stop_signal": int(self._stop_signal),
            "stop_timeout_s": self._stop_timeout_s,
            "owner": os.getpid(),
        }

    def _read_pid(self, supervisor: subprocess.Popen[str]) -> int:
        line = supervisor.stdout.readline().strip() if supervisor.stdout is not None else ""
        if not line:
            raise MigratorError(
                f"{self.name} can't be started",
                where=self.command[0],
                cause="the program can't be executed" + (f" by user {self._user!r}" if self._user else ""),
                remedy="check that the file exists and that every folder above it may be entered",
            )
        return int(line)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        reason = "not asked yet"
        while self.running and time.monotonic() < deadline:
            reason = self._ready()
            if not reason:
                return
            _pause(_POLL_S)
        late = (
            f"is not ready after {self._start_timeout_s:.0f} s" if self.running else "exited while starting"
        )
        raise MigratorError(
            f"{self.name} {late}",
            where=str(self.log),
            cause=self.log_tail() or reason,
            remedy="see the log file",
        )

    def log_tail(self) -> str:
        """The last lines of the server's log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])

    def stop(self) -> None:
        """Shut the server down cleanly, or kill it after the deadline. Does nothing if it isn't running."""
        supervisor = self._supervisor
        if supervisor is None:
            return
        if supervisor.poll() is None:
            supervisor.send_signal(self._stop_signal)
            try:
                supervisor.wait(self._stop_timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """SIGKILL the server and its children, like a crash of the machine; returns once they are gone."""
        supervisor = self._supervisor
        if supervisor is None:
            return
        if supervisor.poll() is None:
            # The server before its children, so that it can't start anything new. PostgreSQL's backends are
            # in sessions of their own, so a process group would not name them, and a restart fails while one
            # of them still holds shared memory.
            pids = [self._pid, *_children(self._pid)] if self._pid is not None else [supervisor.pid]
            for pid in pids:
                _sigkill(pid)
            supervisor.wait()
            _await_gone(pids, self._stop_timeout_s)
        self._forget()

    def _forget(self) -> None:
        if self._supervisor is not None and self._supervisor.stdout is not None:
            self._supervisor.stdout.close()
        self._supervisor = None
        self._pid = None


def plain_environment() -> dict[str, str]:
    """A small fixed environment: what the caller exported (PGPORT, MYSQL_HOME) must not reach a server."""
    path = os.environ.get("PATH", "")
    return {"PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat_fields(int(entry.name))
            if fields and int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def _stat_fields(pid: int) -> list[str]:
    """Fields 3 and up of /proc/PID/stat (state, parent, ...); empty if the process is gone (see proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _sigkill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself, which is what we want


def _await_gone(pids: Sequence[int], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for pid in pids:
        while (fields := _stat_fields(pid)) and fields[0] != "Z":
            if time.monotonic() > deadline:
                raise MigratorError("a killed server's child process does not end", where=f"process {pid}")
            _pause(_POLL_S)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
