"""Runs one server as a child and ends it when the process that asked for it is gone.

Run as a script (``python supervise.py JSON``), never imported by the tool: it has to start fast and stay
single-threaded. Two links keep a throw-away server from outliving its owner, whichever of the two is
SIGKILLed:

* owner dies -> this process sees another parent id and stops the server (stop signal, then SIGKILL);
* this process dies -> the kernel kills the server (``PR_SET_PDEATHSIG``).

The owner does not use ``PR_SET_PDEATHSIG`` itself: the kernel sends that signal when the *thread* that forked
ends, so a server started in a worker thread would die with it, and running Python between fork and exec is
not safe in a process with threads.

Input: one JSON object with ``command`` (list), ``user`` and ``group`` (or null), ``directory``,
``environment``, ``log`` (path), ``stop_signal`` (number), ``stop_timeout_s``, ``owner`` (process id). Output:
the server's process id on one line. Exit code: the server's own (128 + signal number if a signal ended it).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_OWNER_POLL_S = 0.25
_FORWARDED = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}


def _die_with_parent() -> None:
    """Runs in the child between fork and exec, after the change of user (which would clear the setting)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _spawn(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    with open(order["log"], "ab") as log:
        return subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=order["directory"],
            env=order["environment"],
            preexec_fn=_die_with_parent,
            user=order["user"],
            group=order["group"],
            extra_groups=[] if order["user"] else None,
        )


def _end(server: subprocess.Popen[bytes], stop_signal: int, timeout_s: float) -> None:
    server.send_signal(stop_signal)
    try:
        server.wait(timeout_s)
    except subprocess.TimeoutExpired:
        server.kill()


def main(order: dict[str, Any]) -> int:
    """Run the server described by ``order`` until it ends or its owner is gone; returns the exit code."""
    server = _spawn(order)
    # Blocked only now, because a child inherits the mask, and before the owner learns the process id and may
    # ask for a stop. Blocked signals wait for sigtimedwait, so none is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED | {signal.SIGCHLD})
    print(server.pid, flush=True)
    while server.poll() is None:
        received = signal.sigtimedwait(_FORWARDED | {signal.SIGCHLD}, _OWNER_POLL_S)
        if received is not None and received.si_signo in _FORWARDED:
            server.send_signal(received.si_signo)
        if os.getppid() != order["owner"]:
            _end(server, order["stop_signal"], order["stop_timeout_s"])
    code = server.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
