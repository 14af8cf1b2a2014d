"""One signal asks a command to stop, a second one ends the process at once, whatever its main thread does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrator.cli.signals import INTERRUPTED, Signals, unwinding
from migrator.run.failure import Stopping

_HEARD = """
import ctypes, os, sys, threading, time
from migrator.cli import signals
from migrator.run.failure import Stopping
stopping = Stopping()
with signals.heard():
    {told}
    try:
        threading.Timer(0.2, print, ["ready"], dict(flush=True)).start()  # when the work has begun
        {work}
    finally:
        print("closed", flush=True)
print("clean", flush=True)
"""
# Waits for a lock that it has already, for ever; Python runs no handler meanwhile.
_IN_A_LIBRARY = (
    "lock = ctypes.create_string_buffer(64); take = ctypes.CDLL(None).pthread_mutex_lock;"
    " take(lock); take(lock)"
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def ended(signals: list[tuple[float, int]], stopping: Stopping | None) -> list[int]:
    """Exit codes with which these signals, each at its time, end the process."""
    codes: list[int] = []
    clock = Clock()
    heard = Signals(codes.append, clock)
    if stopping is not None:
        heard.ask(stopping)
    for clock.now_s, number in signals:
        heard.came(number)
    return codes


# A shell starts what it puts in the background with SIGINT ignored, and tests that it starts so inherit that.
_IN_THE_FOREGROUND = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


def child(told: str, work: str, tmp_path: Path) -> subprocess.Popen[str]:
    """A process that listens, once it does."""
    script = tmp_path / "listens.py"
    script.write_text(_IN_THE_FOREGROUND + _HEARD.format(told=told, work=work))
    with (tmp_path / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_ends_nothing(number: int) -> None:
    stopping = Stopping()
    assert ended([(0.0, number)], stopping) == []
    assert stopping.requested()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_one_ends_the_process(number: int) -> None:
    assert ended([(0.0, signal.SIGINT), (1.0, number)], Stopping()) == [INTERRUPTED]


def test_the_same_signal_told_to_the_group_and_to_the_process_is_one() -> None:
    assert ended([(0.0, signal.SIGTERM), (0.01, signal.SIGTERM)], Stopping()) == []


def test_a_terminal_that_is_gone_is_no_second_signal() -> None:
    assert ended([(0.0, signal.SIGTERM), (1.0, signal.SIGHUP)], Stopping()) == []


def test_a_signal_that_came_before_anybody_could_be_asked_counts() -> None:
    heard, stopping = Signals(lambda _: None), Stopping()
    heard.came(signal.SIGTERM)
    heard.ask(stopping)
    assert stopping.requested()


def test_a_second_one_ends_it_also_while_the_main_thread_is_in_a_librarys_code(tmp_path: Path) -> None:
    process = child("signals.stop_on_signals(stopping)", _IN_A_LIBRARY, tmp_path)
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
    assert process.wait(30) == INTERRUPTED


def test_one_signal_lets_a_command_that_can_be_asked_end_by_itself(tmp_path: Path) -> None:
    process = child("signals.stop_on_signals(stopping)", "stopping.wait(60)", tmp_path)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "closed\nclean\n")


def test_a_command_that_can_not_be_asked_unwinds(tmp_path: Path) -> None:
    process = child("", "time.sleep(60)", tmp_path)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert said == "closed\n"
    assert process.returncode != 0


def test_what_does_not_unwind_in_time_is_ended(tmp_path: Path) -> None:
    process = child("signals._UNWIND_S = 0.1", _IN_A_LIBRARY, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == INTERRUPTED
    said = (tmp_path / "stderr").read_text()
    assert said == "interrupted\n", "whoever interrupts it sees that it was heard"


def test_a_process_that_ignores_hangups_goes_on_ignoring_them(tmp_path: Path) -> None:
    script = tmp_path / "nohup.py"
    work = "os.kill(os.getpid(), 1); time.sleep(0.2)"
    script.write_text(
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + _HEARD.format(told="", work=work)
    )
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    assert "clean\n" in said


_LEAVES = """
import atexit, threading
from migrator.cli.signals import leave, threads_now
from migrator.connections.patience import SilentError, patiently
before, ends = threads_now(), threading.Event()
atexit.register(print, "taken apart")
{begun}
leave(3, before, wait_s={wait_s})
"""


def left(begun: str, wait_s: float) -> tuple[int, bool]:
    """Exit code of a process that leaves behind what was begun, and whether its interpreter was taken apart."""
    script = _LEAVES.format(begun=begun, wait_s=wait_s)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, "taken apart" in done.stdout


def test_a_thread_that_can_not_be_waited_for_goes_with_the_process() -> None:
    assert left("threading.Thread(target=ends.wait, daemon=True).start()", 0.05) == (3, False)


def test_a_call_left_behind_is_a_thread_as_well() -> None:
    begun = """
try: patiently(ends.wait, 0.01, lambda: False, lambda: None)
except SilentError: pass
"""
    assert left(begun, 0.05) == (3, False)


def test_a_thread_that_ends_in_time_is_waited_for() -> None:
    begun = "threading.Thread(target=ends.wait, daemon=True).start(); threading.Timer(0.1, ends.set).start()"
    assert left(begun, 30) == (3, True)


def test_sigterm_unwinds_a_block_and_is_as_before_afterwards() -> None:
    before, closed = signal.getsignal(signal.SIGTERM), []

    def ended() -> None:
        with unwinding():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                closed.append("servers")

    with pytest.raises(SystemExit) as exit_code:
        ended()
    assert (exit_code.value.code, closed) == (143, ["servers"])
    assert signal.getsignal(signal.SIGTERM) is before
