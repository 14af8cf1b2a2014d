"""Durable file operations: what returned here survives a power cut.

All functions raise plain ``OSError``; the callers know which segment it concerns and name it
(``disk_refused``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, wait
from pathlib import Path

from migrator.errors import EventLogError

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
"""Rows of the source are nobody else's business."""


def make_directory(path: Path) -> None:
    """Creates a directory and its missing parents, each entry durable."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    with contextlib.suppress(FileExistsError):  # somebody else was faster: the same result
        path.mkdir(mode=DIRECTORY_MODE)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Makes created, linked and removed names of a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_new(path: Path) -> int:
    """A descriptor of a file that didn't exist. Raises ``FileExistsError``."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)


def write_all(handle: int, content: memoryview) -> None:
    """Writes all of it (one ``write`` call may take less)."""
    while content:
        content = content[os.write(handle, content) :]


def sync_all(handles: Sequence[int], threads: Executor) -> None:
    """``fsync`` of all of them at once: the filesystem serves them with one journal commit instead of one each."""
    started = [threads.submit(os.fsync, handle) for handle in handles]
    wait(started)
    for one in started:
        one.result()


def link_new(temporary: Path, path: Path) -> bool:
    """Shows a complete, synced file under its name in one atomic step; False when the name is taken already.

    The name is durable on return. A reader sees all of the file or nothing, and of two creators one fails.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):  # a left temporary file does no harm; the next writer removes it
            os.unlink(temporary)
    sync_directory(path.parent)
    return True


def read_number(path: Path) -> int:
    """The number kept in a file; 0 when there is none. Raises ``EventLogError`` when it isn't a number."""
    try:
        text = path.read_text("ascii")
    except FileNotFoundError:
        return 0
    except UnicodeDecodeError:
        text = "(binary)"
    if not text.strip().isdecimal():
        raise EventLogError(
            "a number of the event log can't be read",
            where=str(path),
            cause=f"the file holds {text[:40]!r}",
            remedy="somebody edited the file: restore it, or write the newest manifest's number into it",
        )
    return int(text)


def raise_number(path: Path, value: int) -> int:
    """Makes the number kept in a file at least ``value``, durably; returns the number now kept."""
    with _locked(path.with_name(path.name + ".lock")):
        present = read_number(path)
        if present >= value:
            return present
        replace_file(path, f"{value}\n".encode())
        return value


def replace_file(path: Path, content: bytes) -> None:
    """Makes a file hold this, durably; a crash leaves the old or the new content. One writer at a time."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    _write_synced(temporary, content)
    os.replace(temporary, path)
    sync_directory(path.parent)


def disk_refused(what: str, path: Path | str, error: OSError) -> EventLogError:
    """The named error for an ``OSError``."""
    return EventLogError(
        what,
        where=str(error.filename or path),
        cause=f"{error.strerror or error} ({errno.errorcode.get(error.errno or 0, 'no errno')})",
        remedy=_REMEDIES.get(error.errno or 0, "check the disk and the kernel's log, then start again"),
        retryable=error.errno in (errno.ENOSPC, errno.EDQUOT),
    )


_REMEDIES = {
    errno.ENOSPC: "free space on this filesystem, then start again: nothing is lost",
    errno.EDQUOT: "raise the quota or free space on this filesystem, then start again: nothing is lost",
    errno.EACCES: "give the user who runs the migrator read and write access to this directory",
    errno.EPERM: "put the state directory on a filesystem with hard links, writable by this user",
    errno.ENOTSUP: "put the state directory on a filesystem with hard links",
    errno.EROFS: "the filesystem is mounted read-only: mount it writable, then start again",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then start again",
}


def _write_synced(path: Path, content: bytes) -> None:
    handle = open_new(path)
    try:
        write_all(handle, memoryview(content))
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):  # the first error is the one to report
            os.unlink(path)
        raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
