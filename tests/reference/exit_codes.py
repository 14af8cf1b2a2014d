"""The exit codes of all commands in one table."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.cli.exit_codes import EXIT_CODES
from tests.reference.blocks import table

PAGE = "reference/commands.md"
_CODES = (0, 1, 2, 3)


def lines() -> Iterator[str]:
    """A row for each command, or group of commands, that means something of its own by a code."""
    rows = [
        [f"`{name}`", *(codes.get(code, "") for code in _CODES)] for name, codes in sorted(EXIT_CODES.items())
    ]
    yield from table(["Command", *map(str, _CODES)], [*rows, ["any other", "done", "", "error", ""]])
    yield ""
    yield (
        "130: Ctrl-C or SIGTERM ended the command at once; of `run`, the second one. 141: nobody reads any more what"
        " it prints (`migrator status | head -1`)."
    )
