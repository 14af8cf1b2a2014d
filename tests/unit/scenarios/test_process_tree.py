"""What /proc says of processes: whether one is still there."""

from __future__ import annotations

import subprocess
import sys

from scenarios.faults.process_tree import alive
from scenarios.faults.processes import await_true

# The main thread ends, another goes on until its standard input does.
_HEADLESS = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def test_a_process_lives_as_long_as_any_of_its_threads() -> None:
    """Whoever took it for ended would find that its parent still can't wait for it."""
    process = subprocess.Popen([sys.executable, "-c", _HEADLESS], stdin=subprocess.PIPE)
    assert process.stdin is not None
    await_true(lambda: _state(process.pid) == "Z", "its main thread ends")
    assert process.poll() is None
    assert alive(process.pid)
    process.stdin.close()
    await_true(lambda: not alive(process.pid), "the process ends")
    assert process.wait(timeout=10) == 0


def test_a_process_that_was_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not alive(process.pid)
