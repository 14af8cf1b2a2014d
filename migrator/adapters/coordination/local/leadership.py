"""Leadership on one machine: a file lock says who leads, a file keeps the epoch.

The kernel gives the lock back when its process ends, however it ends, so a SIGKILL needs no timeout. The lock
file is never removed: a second file of that name could be locked by a second leader.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path

from migrator.adapters.coordination.local.standby import Standby
from migrator.errors import FencedError, MigratorError
from migrator.ports.leadership import Lease

_TRIES, _PAUSE_S = 25, 0.01
_LOOK_EVERY_S = 0.1
_IS_LEADER = " is its leader"


class LocalLeadership:
    """A ``Leadership`` over the state directory. One thread uses it; one object holds at most one lease at a
    time.

    Args:
        state: the migration's state directory; created when missing. Must be on this machine (a network
            filesystem's locks are not to be trusted after a SIGKILL or a network cut: configure ZooKeeper
            there).
    """

    def __init__(self, state: str | os.PathLike[str]) -> None:
        self._state = Path(os.path.abspath(state))
        self._lock_path = self._state / "leader.lock"
        self._epoch_path = self._state / "epoch"
        self._handle: int | None = None
        self._standby = Standby(self._state / "standbys")

    def acquire(self, above_epoch: int) -> Lease:
        """Takes the lock and raises the epoch above ``above_epoch`` and every earlier one.

        Raises ``FencedError`` naming process and host of the present leader; ``MigratorError`` naming the
        file when the state directory can't be used.
        """
        if self._handle is not None:
            raise self._taken()
        try:
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._refused(error) from error
        try:
            _lock(handle)
            lease = Lease(owner=_owner(), epoch=max(self._epoch(), above_epoch) + 1)
            self._store_epoch(lease.epoch)
            os.ftruncate(handle, 0)
            os.pwrite(
                handle,
                json.dumps({"format": 1, "pid": os.getpid(), "host": socket.gethostname()}).encode(),
                0,
            )
        except BlockingIOError as error:
            os.close(handle)
            raise self._taken() from error
        except OSError as error:
            os.close(handle)
            raise self._refused(error) from error
        except MigratorError:
            os.close(handle)
            raise
        self._handle = handle
        self._standby.end()
        return lease

    def held(self) -> bool:
        """Tells whether the lock is still ours: not released, and its file still the one that others would lock."""
        if self._handle is None:
            return False
        try:
            ours, present = os.fstat(self._handle), os.stat(self._lock_path)
        except FileNotFoundError:
            present = None
        if present is None or (ours.st_dev, ours.st_ino) != (present.st_dev, present.st_ino):
            self.release()  # somebody removed the state directory: another process may lead by now
            return False
        return True

    def sure(self) -> bool:
        """Answers as ``held`` does: the kernel gives the lock to nobody else while we have it."""
        return self.held()

    def stand_by(self, timeout_s: float) -> str:
        """See the port. Looks several times a second."""
        self._standby.begin()
        deadline = time.monotonic() + timeout_s
        while (leads := self.holder()) and time.monotonic() < deadline:
            time.sleep(min(_LOOK_EVERY_S, timeout_s))
        return leads

    def standbys(self) -> tuple[str, ...]:
        """Names the processes that stand by on this machine."""
        return self._standby.all()

    def holder(self) -> str:
        """Names who leads now, by looking only; empty when nobody does."""
        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        try:
            # Shared, so that two onlookers don't take each other for the leader; given back on close. A leader that
            # starts in this very moment tries again (``_lock``), and is never let in beside another.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._taken().cause.removesuffix(_IS_LEADER)
        finally:
            os.close(handle)
        return ""

    def release(self) -> None:
        """Gives the lock back, or the place as a standby. Safe to call twice."""
        self._standby.end()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _epoch(self) -> int:
        try:
            text = self._epoch_path.read_text("ascii", errors="replace")
        except FileNotFoundError:
            return 0
        if not text.strip().isdecimal():
            raise MigratorError(
                "the epoch can't be read",
                where=str(self._epoch_path),
                cause=f"the file holds {text[:40]!r} instead of a number",
                remedy="somebody edited the file: remove it, the ledger and the event log know the epoch too",
            )
        return int(text)

    def _store_epoch(self, epoch: int) -> None:
        """Written whole under another name, then renamed: a crash leaves the old or the new number."""
        temporary = self._state / ".epoch.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, f"{epoch}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, self._epoch_path)
        directory = os.open(self._state, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _taken(self) -> FencedError:
        holder = "another process"
        with contextlib.suppress(
            OSError, ValueError, TypeError, KeyError
        ):  # it may be writing its name just now
            found = json.loads(self._lock_path.read_text("utf-8"))
            holder = f"process {found['pid']} on {found['host']}"
        return FencedError(
            "this migration is already being run",
            where=str(self._lock_path),
            cause=f"{holder}{_IS_LEADER}",
            remedy="stop that process first, or start this one with --ha: it will wait for its turn",
        )

    def _refused(self, error: OSError) -> MigratorError:
        return MigratorError(
            "leadership can't be taken: the state directory can't be used",
            where=str(error.filename or self._state),
            cause=str(error.strerror or error),
            remedy="give this user write access to the state directory and check its free space",
            retryable=error.errno in (errno.ENOSPC, errno.EDQUOT),  # as for the event log beside it
        )


def _lock(handle: int) -> None:
    """Locks, or raises ``BlockingIOError``. Tries for a moment: ``holder`` of a status command may be looking."""
    for _ in range(_TRIES - 1):
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
    return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
