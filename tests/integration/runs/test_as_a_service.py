"""A run as a service of systemd: what it says, and what the unit's signals do, played by hand in their order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from migrator.own_modules import python_m
from scenarios.bench.orders.old_schema import create
from scenarios.faults.process_tree import alive, descendants, send
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 300
WAIT_S = 120.0
WATCHDOG_US = 2_000_000


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), ROWS)
    return run_project.make(tmp_path / "project", old_pg, new_pg)


class Service:
    """A run, started and told to stop as the unit says."""

    def __init__(self, project: Project, folder: Path):
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(str(folder / "notify"))
        self._heard.settimeout(WAIT_S)
        address = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": str(WATCHDOG_US)}
        self.process = subprocess.Popen(
            [*python_m("migrator"), "run", "--plain", "--config", str(project.config)],
            env={**os.environ, **address}, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.others: set[int] = set()

    def word(self) -> str:
        """The next that the run says."""
        return self._heard.recv(4096).decode()

    def until(self, what: str) -> list[str]:
        """All that it says until a word with ``what``, that one included."""
        words = [self.word()]
        while what not in words[-1]:
            words.append(self.word())
        self.others |= set(descendants(self.process.pid))
        return words

    def is_silent(self) -> bool:
        """Whether nothing more is said in the watchdog's time, once what was said before is read."""
        self._heard.setblocking(False)
        with suppress(BlockingIOError):
            while self.word():
                pass
        self._heard.settimeout(WATCHDOG_US / 1e6)
        try:
            self.word()
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        send([self.process.pid, *self.others, *descendants(self.process.pid)], signal.SIGKILL)
        self.process.wait()
        self._heard.close()


@pytest.fixture
def service(project: Project, tmp_path: Path) -> Iterator[Service]:
    started = Service(project, tmp_path)
    yield started
    started.close()


def test_it_is_ready_lives_and_stops_as_kill_mode_mixed_has_it(project: Project, service: Service) -> None:
    assert service.word() == "READY=1"
    assert "WATCHDOG=1" in service.word()
    words = service.until(f"{ROWS} rows dumped")
    assert all(word.startswith("STATUS=") and word.endswith("WATCHDOG=1") for word in words)
    service.until("WATCHDOG=1")
    assert service.others, "Spark runs"
    for pid in service.others:
        assert b"NOTIFY_SOCKET=" not in Path(f"/proc/{pid}/environ").read_bytes(), (
            "it speaks for itself alone"
        )
    service.process.terminate()
    assert service.until("STOPPING=1")
    assert service.process.wait(WAIT_S) == 0
    assert [pid for pid in service.others if alive(pid)] == [], (
        "nothing is left that systemd would have to kill"
    )
    project.run_here()
    assert project.differences() == []


def test_one_that_says_nothing_is_killed_and_the_next_goes_on(project: Project, service: Service) -> None:
    service.until(" rows dumped")
    assert not service.is_silent(), "the control: it lives"
    service.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, service.process.pid, os.WSTOPPED | os.WNOWAIT)
    assert service.is_silent()
    service.process.kill()  # WatchdogSignal=SIGKILL
    service.process.wait(WAIT_S)
    send(list(service.others), signal.SIGKILL)
    project.run_here()
    assert project.differences() == []
