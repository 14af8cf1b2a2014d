"""A command of the shell that gets so many seconds, and of which nothing is left once it has failed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

_TERM_S = 2.0
"""Seconds from the request to end until it is ended."""
_LOOK_S = 0.02
_SIZE_S = 0.1
"""Between two looks at how much a command has said."""
_MOST_BYTES = 4 << 20
"""Bytes of it that are kept meanwhile: it must not fill the disk that is to be told of."""
VARIABLE_BYTES = 32_000
"""Bytes of a variable; the system refuses to start a command that has one of 128 KiB."""


def ran(
    command: str, standard_input: str, variables: Mapping[str, str], limit_s: float, characters: int
) -> str:
    """Runs a command; returns why it failed, in words, and an empty text where it ended with exit code 0 in time.

    Args:
        command: for the shell.
        standard_input: of the command.
        variables: its environment.
        limit_s: for the command itself. A child that it leaves behind may go on if it ended well.
        characters: that are kept of what it says.

    Past the limit, and after a failure, its whole process group is ended: what failed must not go on. Raises
    ``OSError`` and ``ValueError`` where it can't be started.
    """
    # Files and no pipes: a child that is left behind holds a pipe open, and a reader would wait for it.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(standard_input.encode())
        stdin.seek(0)
        process = subprocess.Popen(
            command, shell=True, stdin=stdin, stdout=out, stderr=err, env=variables, start_new_session=True
        )
        done = False
        try:
            code = _code(process, limit_s, (out, err))
            done = code == 0
        except subprocess.TimeoutExpired:
            return f"it didn't end within {limit_s:g} s"
        finally:
            if not done:
                _end(process)
        said = _end_of(err, characters) or _end_of(out, characters)
        return "" if done else f"it ended with exit code {code}: {said or 'it said nothing'}"


def short(value: str) -> str:
    """A value that a variable of a command can have: its beginning, without what none can hold."""
    return value.replace("\0", "").encode(errors="replace")[:VARIABLE_BYTES].decode(errors="ignore")


def _code(process: subprocess.Popen[bytes], limit_s: float, said: Sequence[IO[bytes]]) -> int:
    """Waits for the command; returns its exit code. Raises ``TimeoutExpired``."""
    until = time.monotonic() + limit_s
    while True:
        try:
            return process.wait(min(_SIZE_S, max(0.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                raise
        for one in said:
            if os.fstat(one.fileno()).st_size > _MOST_BYTES:
                os.ftruncate(one.fileno(), 0)
                os.lseek(one.fileno(), 0, os.SEEK_SET)  # the command's own place, too: it has the same one


def _end_of(said: IO[bytes], characters: int) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - 4 * characters))
    return said.read().decode(errors="replace").strip()[-characters:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the command and all that it started: with a request first, and by force past ``_TERM_S``."""
    _signal(process, signal.SIGTERM)
    until = time.monotonic() + _TERM_S
    while _signal(process, 0) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Sends a signal to its group; tells whether anybody of it is there."""
    process.poll()  # who has ended and isn't waited for would be there for ever
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
        return True
    return False
