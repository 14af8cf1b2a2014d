"""Standard output and error of a command: what nobody can take any more, and what a terminal must not obey.

Names and values of databases are printed. On a terminal they could move its cursor, give it a title or answer for it;
into a file or another program they go as they are.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import IO

from migrator.model.observed.printable import printable

NOBODY_READS = 141
"""Exit code of a command whose reader has gone: 128 + SIGPIPE, as of other programs."""
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
"""Colours and weight: the only sequences that a command prints itself, and that harm nobody."""


class Unwritten(OSError):
    """The failure of a standard stream. It has no number: by that of a broken pipe click ends with 1, a verdict."""

    def __init__(self, cause: OSError):
        super().__init__(str(cause))
        self.nobody_reads = isinstance(cause, BrokenPipeError)
        self.why = cause.strerror or str(cause)


class Output(io.TextIOWrapper):
    """A standard stream in place of Python's own.

    ``spare``: what it can't take is left out, for nobody could be told. ``unguarded``: the same one for whoever
    draws.
    """

    spare = False
    unguarded: io.TextIOWrapper | None = None

    def write(self, text: str, /) -> int:
        """See ``io.TextIOWrapper``. Raises ``Unwritten``."""
        try:
            super().write(for_terminal(text) if self.isatty() else text)
        except OSError as error:
            self._failed(error)
        return len(text)

    def flush(self) -> None:
        """See ``io.TextIOWrapper``. Raises ``Unwritten``."""
        try:
            super().flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if not self.spare:
            raise Unwritten(error) from error


def for_terminal(text: str) -> str:
    """A text of which a terminal takes nothing for an order, but line breaks, tabulators and styles."""
    if text.isprintable():
        return text
    parts = _STYLE.split(text)  # every second one is a style
    return "".join(one if number % 2 else printable(one, "\n\t") for number, one in enumerate(parts))


def put_in_place() -> None:
    """Puts both in the place of Python's own streams, where these are Python's own."""
    for name, spare in (("stdout", False), ("stderr", True)):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper:
            ours = _in_place_of(stream)
            ours.spare = spare
            for one in (name, f"__{name}__"):
                setattr(sys, one, ours)


def drawn_on() -> IO[str]:
    """Returns standard output for whoever moves the cursor, and keeps orders out of what is drawn himself."""
    if not isinstance(sys.stdout, Output):
        return sys.stdout
    if sys.stdout.unguarded is None:
        sys.stdout.unguarded = io.TextIOWrapper(
            sys.stdout.buffer, sys.stdout.encoding, sys.stdout.errors, line_buffering=True
        )
    return sys.stdout.unguarded


def gone() -> None:
    """Lets what is still to be written to standard output go nowhere: Python would fail over it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _in_place_of(stream: io.TextIOWrapper) -> Output:
    encoding, errors = stream.encoding, stream.errors or "strict"
    lines, through = stream.line_buffering, stream.write_through
    stream.flush()
    return Output(stream.detach(), encoding, errors, line_buffering=lines, write_through=through)
