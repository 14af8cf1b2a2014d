"""Named points of a run, where tests and scenarios place their faults.

Every ``step("...")`` in the product names one of ``POINTS``. A hook that does nothing is the rule; two environment
variables change that:

``MIGRATOR_CRASH_AT=<point>[:<n>]``
    the process kills itself with SIGKILL when it reaches the point for the n-th time (default: the first).
``MIGRATOR_STEPS=<path>`` with ``MIGRATOR_STEP_POINTS=<point>[,<point>...]``
    at these points the process connects to the Unix socket (one connection a thread: several threads may be held at
    once), sends the point's name and a newline, and goes on when a line comes back. Where nobody listens any
    more, or no answer comes within ``LONGEST_HOLD_S``, it goes on all the same: a fault harness must never
    stop a migration.

Segments are counted by the event log, batches by the target; a point's n-th time is the n-th of this process.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType

from migrator.errors import ConfigError
from migrator.model.cutover.record import SWITCH, Phase

Step = Callable[[str], None]
"""Called with the name of the point that has been reached, e.g. ``apply.mapped``."""

CRASH_VARIABLE = "MIGRATOR_CRASH_AT"
SOCKET_VARIABLE = "MIGRATOR_STEPS"
POINTS_VARIABLE = "MIGRATOR_STEP_POINTS"
LONGEST_HOLD_S = 120.0

_TAKEN = (*SWITCH, Phase.UNDOING, Phase.FINISHING)
POINTS: Mapping[str, str] = MappingProxyType(
    {
        "run.led": "the lease is taken and the ledger taken over; nothing is read or written yet",
        "log.connected": "the log reader has connected, first or again; no record of it was read",
        "log.records": "records of the log were read, the capture loop doesn't have them yet",
        "changes.poll": "change tables are about to be polled (log = change_tables)",
        "log.acknowledge": "a newer durable place is about to be told to the source (PostgreSQL)",
        "log.acknowledged": "it was told: the source may forget what lies before (PostgreSQL)",
        "chunk.begin": "a chunk read (or another attempt of it) begins, before the low watermark if there is one",
        "chunk.low": "the low watermark is committed, the SELECT hasn't begun (placement = watermark or message)",
        "chunk.snapshot": "the chunk's snapshot is taken, its rows aren't read",
        "chunk.selected": "the chunk's rows are read, the high watermark isn't written",
        "chunk.high": "the high watermark is committed (placement = watermark or message)",
        "capture.chunk": "a chunk read has arrived at the capture loop",
        "capture.emitted": "the chunk's remaining rows were put into the segment being collected",
        "capture.requested": "the same, if a dump request asked for the chunk",
        "capture.segment": "the content of the next segment is complete in memory",
        "capture.appended": "the segment is durable; the log reader doesn't know yet",
        "segment.file": "one data file of the segment is written, not synced, others may follow",
        "segment.data": "all data files of the segment are written, not synced",
        "segment.synced": "data and manifest are synced under temporary names",
        "segment.created": "the manifest has its number: the segment is durable and visible",
        "apply.read": "a batch was read from the event log and checked",
        "apply.mapped": "the batch was mapped",
        "target.begun": "the target transaction holds the ledger's row, nothing is written in it",
        "target.mirrored": "the batch's rows are in the mirror, joined targets are about to be mapped",
        "joined.mapped": "a joined target was mapped from the whole mirror, none of its rows is written",
        "joined.filled": "all rows of a joined target are written, with the batch's other rows still to come",
        "joined.aside": "grains on which a mapping fails were found; the others come next (bad_rows = set_aside)",
        "fill.mapped": "a piece of a joined target was mapped, none of its rows is written",
        "fill.committed": "the apply loop knows that a piece of the joined targets is in the target",
        "target.loaded": "the batch's rows are loaded (staging, or straight into the table), not merged",
        "target.merged": "the batch's rows are merged, the ledger stands where it stood",
        "target.moved": "the ledger is moved as well; COMMIT comes next",
        "target.refused": "a row was refused; its batch is about to be tried without it (bad_rows = set_aside)",
        "target.orphaned": "rows whose parent isn't there are about to be taken out (bad_rows = set_aside)",
        "target.unknown": "the connection was lost during COMMIT; its outcome is about to be looked up",
        "target.committed": "COMMIT has returned",
        "apply.committed": "the apply loop knows that the batch is in the target",
        "apply.released": "the applied segments are released",
        "remap.asked": "the ledger says that a next mapping is asked for; its table isn't made (migrator remap)",
        "remap.merged": "rows of a next mapping are merged into the target, the ledger stands where it stood",
        "remap.moved": "the ledger says what became of a next mapping as well; COMMIT comes next",
        "remap.switched": "COMMIT has returned; the table beside is still there",
        "fence.noting": "a plan of a fence is accepted; what is there before isn't noted yet (cut-over)",
        "fence.raised": "the fence is up, by what the server says; its plan's owner doesn't know yet",
        "fence.opening": "the fence is about to be opened, nothing of it is removed yet",
        "fence.opened": "everything is as it was before the fence, its notes are gone",
        "cutover.reads": "an operator's word about reads is heard: their hook comes next",
        "cutover.reads_done": "the hook for reads has answered: the record comes next",
        "cutover.begun": "an operator's word is heard, and both ways keep up: the record of the switch comes next",
        **{
            f"cutover.{phase}": f"the record says that step {phase} of a cut-over is taken"
            for phase in _TAKEN
        },
        **{
            f"cutover.{phase}_done": f"step {phase} of a cut-over is done, the record comes next"
            for phase in _TAKEN
        },
        "reset.noted": "the state folder says that a reset began, nothing is removed (migrator reset)",
        "reset.marked": "the ledger says so, too (migrator reset)",
        "reset.removed": "one more thing is removed, or the rows of all target tables (migrator reset)",
    }
)
"""Every named point and what is true when it is reached."""


def no_step(name: str) -> None:
    """Does nothing: the step hook of a run without faults."""


def step_hook(environment: Mapping[str, str]) -> Step:
    """The hook that the environment asks for; ``no_step`` when it asks for nothing.

    Raises ``ConfigError`` for a point that doesn't exist: a fault placed there would never fire, and prove nothing.
    """
    hooks = [
        hook for hook in (_crash_hook(environment), _announcing_hook(environment)) if hook is not no_step
    ]
    if len(hooks) < 2:
        return hooks[0] if hooks else no_step
    crash, announce = hooks

    def both(name: str) -> None:
        announce(name)
        crash(name)

    return both


def _crash_hook(environment: Mapping[str, str]) -> Step:
    value = environment.get(CRASH_VARIABLE, "")
    if not value:
        return no_step
    point, _, count = value.partition(":")
    _known(CRASH_VARIABLE, point)
    if count and not (count.isdecimal() and int(count)):
        raise ConfigError(
            f"{CRASH_VARIABLE} is {value!r}", where=CRASH_VARIABLE, remedy="write <point>:<number from 1 on>"
        )
    left = int(count or 1)
    lock = threading.Lock()

    def step(name: str) -> None:
        nonlocal left
        if name != point:
            return
        with lock:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return step


def _announcing_hook(environment: Mapping[str, str]) -> Step:
    path = environment.get(SOCKET_VARIABLE, "")
    names = [name.strip() for name in environment.get(POINTS_VARIABLE, "").split(",") if name.strip()]
    if not path or not names:
        return no_step
    for name in names:
        _known(POINTS_VARIABLE, name)
    return _Announcer(path, frozenset(names)).step


class _Announcer:
    """Tells a listener on a Unix socket which point a thread has reached, and waits for its answer."""

    def __init__(self, path: str, points: frozenset[str]):
        self._path = path
        self._points = points
        self._own = threading.local()

    def step(self, name: str) -> None:
        """Announces the point if it was asked for."""
        if name not in self._points:
            return
        try:
            connection = self._connected()
            connection.sendall(name.encode() + b"\n")
            if connection.recv(16):
                return
        except OSError:  # nobody listens: the migration is what matters, so it goes on
            pass
        self._forget()

    def _connected(self) -> socket.socket:
        connection: socket.socket | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._own.connection = connection
            connection.settimeout(LONGEST_HOLD_S)
            connection.connect(self._path)
        return connection

    def _forget(self) -> None:
        connection: socket.socket | None = getattr(self._own, "connection", None)
        self._own.connection = None
        if connection is not None:
            connection.close()


def _known(variable: str, point: str) -> None:
    if point not in POINTS:
        raise ConfigError(
            f"{variable} names the point {point!r}, which doesn't exist",
            where=variable,
            remedy=f"name one of: {', '.join(POINTS)}",
        )
