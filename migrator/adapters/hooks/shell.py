"""A command of the shell that gets so many seconds, and of which nothing is left once it has failed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

_TERM_S = 2.0
"""Seconds from the request to end until it is ended."""
_LOOK_S = 0.02


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
            code = process.wait(limit_s)
            done = code == 0
        except subprocess.TimeoutExpired:
            return f"it didn't end within {limit_s:g} s"
        finally:
            if not done:
                _end(process)
        said = _end_of(err, characters) or _end_of(out, characters)
        return "" if done else f"it ended with exit code {code}: {said or 'it said nothing'}"


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
