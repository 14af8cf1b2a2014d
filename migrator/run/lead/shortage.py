"""Shortages of a machine (open files, disk space, memory), as named errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from migrator.errors import MigratorError

_SHORTAGES = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files (fs.file-max)",
    errno.ENOSPC: "free space on this filesystem",
    errno.EDQUOT: "raise the quota or free space on this filesystem",
    errno.ENOMEM: "give the process more memory",
}
"""Shortages of a machine, and the way out. Any other ``OSError`` that nobody named is a fault of ours."""
_MOMENTARY = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Shortages that go when whatever took it ends, our own threads included. A full disk waits for a person."""


@contextmanager
def named_shortage() -> Iterator[None]:
    """Raises ``MigratorError`` for an ``OSError`` that tells of a shortage, and for ``MemoryError``."""
    try:
        yield
    except OSError as error:  # deep inside a library perhaps
        if error.errno not in _SHORTAGES:
            raise
        raise MigratorError(
            "the operating system refuses what the run needs",
            where=str(error.filename or ""),
            cause=f"{error.strerror} ({errno.errorcode[error.errno]})",
            remedy=f"{_SHORTAGES[error.errno]}, then start again: nothing is lost",
            retryable=error.errno in _MOMENTARY,
        ) from error
    except MemoryError as error:
        raise MigratorError(
            "the process gets no more memory",
            cause=str(error),
            remedy=f"{_SHORTAGES[errno.ENOMEM]}, then start again: nothing is lost",
            retryable=True,
        ) from error
