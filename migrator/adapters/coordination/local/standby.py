"""The processes that stand by on one machine: a locked file each, which the kernel unlocks when its process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
from pathlib import Path


class Standby:
    """One process's place among the standbys, and a look at all of them.

    Args:
        folder: of the files; made when first needed.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._handle: int | None = None
        self._path = folder / f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"

    def begin(self) -> None:
        """Is seen from now on. Raises ``OSError`` when the folder can't be used."""
        if self._handle is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_SH)
            self._handle = handle

    def end(self) -> None:
        """Is seen no longer. Safe to call twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._path.unlink(missing_ok=True)
            os.close(handle)

    def all(self) -> tuple[str, ...]:
        """Processes that stand by; what dead ones left is ignored."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self._folder.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if _locked(path):
                        host, pid, _ = path.name.rsplit("-", 2)
                        found.append(f"process {pid} on {host}")
        return tuple(found)


def _locked(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
