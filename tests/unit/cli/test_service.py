"""The words to a service manager: what is said, how often at least, and by whom alone."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.cli.run.service import ServiceManager, status
from migrator.run.failure import Stopping
from migrator.run.progress import Progress, Snapshot

WAIT_S = 30.0


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket as systemd has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(tmp_path / "notify"))
        bound.settimeout(WAIT_S)
        yield bound


def heard(manager: socket.socket, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The first four words of a run, and its last; and what is left of its surroundings."""
    left = {"NOTIFY_SOCKET": manager.getsockname(), "HOME": "/", **environment}
    progress, stopping = Progress(), Stopping()
    progress.set(applied_changes=1234, note="waiting for\n the source")
    said = ServiceManager(left)
    thread = threading.Thread(target=said.follow, args=(progress, stopping))
    thread.start()
    words = [manager.recv(4096).decode() for _ in range(4)]
    stopping.request()
    thread.join(WAIT_S)
    manager.setblocking(False)
    while True:
        try:
            words.append(manager.recv(4096).decode())
        except BlockingIOError:
            return words, left


def test_a_run_is_ready_alive_again_and_again_and_stops(manager: socket.socket) -> None:
    words, left = heard(manager, WATCHDOG_USEC="20000", WATCHDOG_PID=str(os.getpid()))
    assert words[0] == "READY=1"
    alive = "STATUS=1,234 changes applied, 0 rows dumped; waiting for the source\nWATCHDOG=1"
    assert set(words[1:-1]) == {alive}
    assert words[-1].startswith("STOPPING=1\n")
    assert left == {"HOME": "/"}, "no process that the run starts may speak for it"


@pytest.mark.parametrize(
    ("environment", "every_s"),
    [
        ({}, 15.0),
        ({"WATCHDOG_USEC": "120000000"}, 15.0),
        ({"WATCHDOG_USEC": "4000000"}, 2.0),
        ({"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"}, 15.0),
        ({"WATCHDOG_USEC": "0"}, 15.0),
        ({"WATCHDOG_USEC": "soon"}, 15.0),
    ],
)
def test_it_speaks_twice_in_the_watchdogs_time(environment: dict[str, str], every_s: float) -> None:
    assert ServiceManager(environment)._every_s == every_s


def test_nobody_listens_where_no_manager_started_it(tmp_path: Path) -> None:
    assert not ServiceManager({}).listens()
    assert ServiceManager({"NOTIFY_SOCKET": "@abstract"}).listens()
    assert ServiceManager({"MIGRATOR_ALIVE_FILE": str(tmp_path / "alive")}).listens()


def test_a_manager_that_is_gone_and_a_folder_that_is_missing_stop_no_run(tmp_path: Path) -> None:
    stopping = Stopping()
    stopping.request()
    gone = {"NOTIFY_SOCKET": str(tmp_path / "gone"), "MIGRATOR_ALIVE_FILE": str(tmp_path / "no" / "alive")}
    ServiceManager(gone).follow(Progress(), stopping)


def test_the_file_that_probes_look_at_is_written_anew(tmp_path: Path) -> None:
    file, stopping = tmp_path / "alive", Stopping()
    stopping.request()
    ServiceManager({"MIGRATOR_ALIVE_FILE": str(file)}).follow(Progress(), stopping)
    assert file.read_text() == f"{status(Snapshot())}\n"
