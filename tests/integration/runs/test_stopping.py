"""Whole commands are told to stop, as terminals, systemd and impatient people do it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pymysql
import pytest

from scenarios.bench.orders.old_schema import create
from scenarios.faults.process_tree import alive, command_line, descendants, send
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = pytest.mark.spark

ROWS = 500
# Tells how many threads are left when the interpreter is about to be taken apart, after all that it waits for
# itself. Signals are as a login has them: tests that run behind nohup inherit an ignored SIGHUP, which stays ignored.
_COMMAND = """
import _thread, atexit, signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
atexit.register(lambda: print("left:", _thread._count(), flush=True))
from migrator.cli import main
main()
"""
# A session of its own on the terminal given as standard input, as a login has it.
_ON_A_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


MARIADB = ("old_maria", "new_maria")


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Between two databases of PostgreSQL, unless a test names others."""
    old, new = map(request.getfixturevalue, getattr(request, "param", ("old_pg", "new_pg")))
    create(scenario_database(old), ROWS)
    return run_project.make(tmp_path / "project", old, new)


class Started:
    """A command as a process, with what it says in a file."""

    def __init__(self, project: Project, *arguments: str, terminal: bool = False):
        self.said = project.config.parent / f"said-{'-'.join(arguments)}"
        self.said.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-c",
            _COMMAND,
            *arguments,
            "--config",
            str(project.config),
        ]
        self._master: int | None = None
        if terminal:
            self._master, slave = pty.openpty()
            self.process = subprocess.Popen(
                [sys.executable, "-c", _ON_A_TERMINAL, *command], stdin=slave, stdout=slave, stderr=slave
            )
            os.close(slave)
        else:
            with self.said.open("wb") as said:
                self.process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)

    def type(self, keys: bytes) -> None:
        assert self._master is not None
        os.write(self._master, keys)

    def everything(self) -> list[int]:
        """The process and all that it started, as systemd finds them."""
        return [self.process.pid, *descendants(self.process.pid)]

    def ended(self) -> tuple[int, str]:
        """Exit code, and all that was said."""
        shown = b""
        if self._master is not None:
            while True:
                try:
                    shown += os.read(self._master, 65536)
                except OSError:  # the terminal's other end was closed by the last process that had it
                    break
            os.close(self._master)
            self._master = None
        try:
            code = self.process.wait(180)  # a machine that is busy starts Spark in a minute, and ends it then
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # has it say where each thread stands
            self.process.wait(30)
            raise AssertionError(f"it doesn't end: {self.said.read_text(errors='replace')}") from None
        return code, (shown or self.said.read_bytes()).decode(errors="replace")

    def kill(self) -> None:
        send(self.everything(), signal.SIGKILL)


@contextmanager
def started(project: Project, *arguments: str, terminal: bool = False) -> Iterator[Started]:
    command = Started(project, *arguments, terminal=terminal)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.kill()
            command.process.wait()


def awaited(holds: Callable[[], bool], what: str, wait_s: float = 90.0) -> None:
    deadline = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def rows(database: Database) -> int:
    with suppress(psycopg.Error, pymysql.Error):
        return int(str(database.query("SELECT count(*) FROM purchase")[0][0]))
    return 0


def insert(project: Project) -> None:
    project.old.execute(
        "INSERT INTO orders SELECT (SELECT max(id) + 1 FROM orders), customer, items, state, comment, total, rebate,"
        " created, paid, source FROM orders LIMIT 1"
    )


def clean(code: int, said: str) -> None:
    assert code == 0, said
    assert "target commits" in said, "without its summary"
    assert "left: 0" in said, said
    assert "Traceback" not in said
    assert "Fatal" not in said


@pytest.mark.slow
@pytest.mark.parametrize("project", [("old_pg", "new_pg"), MARIADB], indirect=True, ids=str)
def test_a_run_ends_cleanly_however_it_is_told_and_at_once_when_told_twice(project: Project) -> None:
    with started(project, "run", terminal=True) as run:
        awaited(lambda: rows(project.new) == ROWS, "the dump never arrived")
        run.type(b"\x03")  # the terminal tells its whole foreground group
        clean(*run.ended())
    with started(project, "run", "--plain") as run:
        insert(project)
        awaited(lambda: rows(project.new) == ROWS + 1, "the stream never arrived")
        with locked(project.new, "purchase"):
            insert(project)
            awaited(lambda: waits(project.new), "nothing waits for the table")
            send(run.everything(), signal.SIGTERM)
            time.sleep(1)  # nothing to wait for: a batch that is lost with Spark would have failed by then
        clean(*run.ended())
    assert rows(project.new) == ROWS + 2, "the transaction under way is finished"
    with started(project, "run", "--plain") as run, locked(project.new, "purchase"):
        insert(project)
        awaited(lambda: waits(project.new), "nothing waits for the table")
        run.process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert run.process.poll() is None, "it doesn't wait for the transaction under way"
        run.process.send_signal(signal.SIGINT)
        assert run.ended()[0] == 130
    project.run_here()
    assert project.differences() == []


def sparks(pid: int) -> bool:
    return any("org.apache.spark" in word for word in command_line(pid))


WAITS = (
    "SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND db = DATABASE()"
)


def waits(database: Database) -> bool:
    return bool(
        database.query(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            if database.kind == "postgresql"
            else WAITS
        )
    )


@contextmanager
def locked(database: Database, table: str) -> Iterator[None]:
    """Keeps everybody else away from a table, until the block ends or the lock is gone."""
    with database.connect(autocommit=False) as blocker, blocker.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table}" + (" WRITE" if database.kind != "postgresql" else ""))
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "arguments", "code", "says"),
    [
        (signal.SIGINT, ["check"], 130, "interrupted"),
        (signal.SIGTERM, ["explain"], 130, "interrupted"),
        (signal.SIGHUP, ["run", "--plain"], 0, "target commits"),
    ],
)
def test_while_spark_starts_a_signal_ends_a_command_without_a_traceback(
    project: Project, number: signal.Signals, arguments: list[str], code: int, says: str
) -> None:
    with started(project, *arguments) as command:
        awaited(lambda: any(map(sparks, command.everything())), "Spark's JVM never starts", 60)
        started_by_it = command.everything()
        send(started_by_it, number)
        found, said = command.ended()
        awaited(lambda: not any(map(alive, started_by_it)), "Spark's JVM outlives the command")
    assert (found, says in said) == (code, True), said
    assert "Traceback" not in said
    assert "Fatal" not in said
