"""Signals that tell a command to stop: one signal asks, a second one ends the process at once.

Python runs its own handlers in the main thread alone, and not while that waits in a library's code. So the
numbers of signals come through a pipe to a thread that nothing holds up.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from migrator.run.failure import Stopping

INTERRUPTED, TERMINATED = 130, 143
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TWICE_S = 0.3
"""Less than this after the first, another one is the same: a terminal, ``timeout`` and others tell a whole group of
processes and each of them as well."""
_UNWIND_S = 5.0
"""Seconds for a command that keeps no place to stop at: it closes what it holds, or is ended all the same."""
_LOOK_S = 0.02
_SHOW_CURSOR = b"\x1b[?25h"


class Signals:
    """The signals that came in, and whom they tell to stop.

    Args:
        end: ends the process at once, with an exit code.
        clock: seconds.
    """

    def __init__(
        self, end: Callable[[int], object] = os._exit, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._end = end
        self._clock = clock
        self._stopping: Stopping | None = None
        self._first_s: float | None = None
        self._over = threading.Event()
        self._terminals = [descriptor for descriptor in (0, 1, 2) if os.isatty(descriptor)]

    def ask(self, stopping: Stopping) -> None:
        """Has the first signal ask for a clean stop from now on; one that came before counts."""
        self._stopping = stopping
        if self._first_s is not None:
            stopping.request()

    def came(self, number: int) -> None:
        """Takes a signal, in a thread of its own."""
        if number == signal.SIGHUP:
            self._terminal_is_gone()
        if self._first_s is None:
            self._first_s = self._clock()
            if self._stopping is not None:
                self._stopping.request()
            else:
                threading.Thread(target=self._unwound, name="unwinding", daemon=True).start()
        elif number != signal.SIGHUP and self._clock() - self._first_s >= _TWICE_S:
            with suppress(OSError):
                if 1 in self._terminals:
                    os.write(1, _SHOW_CURSOR)
            self._end(INTERRUPTED)

    def handler(self, _: int, __: FrameType | None) -> None:
        """Runs in the main thread. A command that can be asked goes on, any other one unwinds."""
        if self._stopping is None:
            raise KeyboardInterrupt

    def listen(self, pipe: int) -> None:
        """Reads numbers of signals until a zero comes."""
        while True:
            for number in os.read(pipe, 64):
                if not number:
                    self._over.set()
                    return
                self.came(number)

    def _unwound(self) -> None:
        if not self._over.wait(_UNWIND_S):
            with suppress(OSError):
                os.write(
                    2, b"interrupted\n"
                )  # the main thread, which else says so, waits in a library's code
            self._end(INTERRUPTED)

    def _terminal_is_gone(self) -> None:
        """Sends further output nowhere: on a terminal that is gone it would fail."""
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in self._terminals:
                os.dup2(nowhere, descriptor)
            os.close(nowhere)
        self._terminals = []


_heard: Signals | None = None


@contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP are ours while the block runs, in the main thread; ignored ones stay ignored."""
    global _heard
    signals = Signals()
    ours = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    out, into = os.pipe()
    os.set_blocking(into, False)
    thread = threading.Thread(target=signals.listen, args=(out,), name="signals", daemon=True)
    thread.start()
    _heard, previous = signals, signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    before = {number: signal.signal(number, signals.handler) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous)
        _heard = None
        os.write(into, b"\0")
        thread.join()
        os.close(into)
        os.close(out)


def stop_on_signals(stopping: Stopping) -> None:
    """The first Ctrl-C, SIGTERM or SIGHUP asks for a clean stop; the next Ctrl-C or SIGTERM ends the process."""
    if _heard is not None:
        _heard.ask(stopping)


def leave(code: int, before: int, wait_s: float = 10.0) -> None:
    """Ends the process with ``code``. A thread that goes on while the interpreter is taken apart may crash it.

    Threads in libraries' code can't be ended from outside, calls left behind
    (``migrator.connections.patience``) among them: those that don't end in time go with the process.

    Args:
        before: how many threads there were before the command.
        wait_s: for all threads that nobody waited for.
    """
    deadline = time.monotonic() + wait_s
    while threads_now() > before and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    if threads_now() > before:
        at_once(code)
    sys.exit(code)


def threads_now() -> int:
    """Returns how many threads run; without those of pools, for which the interpreter itself waits before it goes."""
    awaited = sum(
        not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()
    )
    return _thread._count() - awaited  # also those that ``threading`` doesn't know


def at_once(code: int) -> None:
    """Ends the process without taking the interpreter apart; what was said is written out first."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@contextmanager
def unwinding() -> Iterator[None]:
    """SIGTERM unwinds the block like an error: the servers and processes that it started are stopped, and the exit
    code is 143. In the main thread; afterwards SIGTERM does what it did before."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
