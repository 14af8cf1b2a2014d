"""The command line in UTF-8, whatever the locale says: what is typed, named and printed keeps its characters.

Under a locale of ASCII alone (``LC_ALL=C``, where Python's own way out of it is closed) a predicate with an umlaut
would reach us as bytes in disguise, which no file and no server takes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from migrator.errors import RequestError


def begin_in_utf8() -> None:
    """Begins this process anew, as Python's UTF-8 mode, where it isn't in UTF-8; what can't be printed is
    escaped."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")


def refuse_other_encodings(arguments: Sequence[str]) -> None:
    """Raises ``RequestError`` for an argument that isn't UTF-8."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise RequestError(
                "an argument of the command is not UTF-8",
                where=ascii(os.fsencode(argument)),
                cause="it came in another encoding, or is the name of a file in one",
                remedy="type it in a terminal that sends UTF-8; rename such a file",
            ) from None
