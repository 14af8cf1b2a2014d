"""The states in which MySQL and MariaDB refuse statements whatever rights the login has, by their errors."""

from __future__ import annotations

import re

from migrator.connections.states import RefusingState

NO_WRITES = "the {side} takes no writes"
WRITABLE_REMEDY = (
    "connect to the primary; if this is it: SET GLOBAL read_only = OFF (super_read_only goes off with it)"
)
"""The remedy for ``read_only`` and ``super_read_only``, on both engines."""
_WITHOUT = "start the server again without innodb_read_only and innodb_force_recovery"
_OPTION_PREVENTS = 1290
_SCHEMA_READ_ONLY = 3989
_REFUSED: dict[int, tuple[str, str, bool]] = {
    1226: (
        "a limit of the user on the {side} is reached",
        "raise the limit: ALTER USER ... WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0",
        True,
    ),
    1792: (
        "transactions on the {side} are read-only",
        "connect to the primary, and not by a proxy's port for readers",
        False,
    ),
    1036: (NO_WRITES, _WITHOUT, False),
    1836: (NO_WRITES, _WITHOUT, False),
    1874: (NO_WRITES, _WITHOUT, False),
    1881: (NO_WRITES, _WITHOUT, False),
}
_OF_ENGINE, _ENGINE_READ_ONLY = frozenset({1005, 1015}), re.compile(r"\b165\b")
"""Errors that pass on what the storage engine says, and its number for a table that is read-only."""
_OPTION = re.compile(r"--([a-z][a-z0-9_-]*)")
_SCHEMA = re.compile(r"'([^']+)'")


def state_of(code: int, message: str) -> RefusingState | None:
    """Returns the state that an error tells of; None for any other error.

    What is read from the words is put in by the server, whatever its language.
    """
    if code == _OPTION_PREVENTS:
        option = _OPTION.search(message)
        name = option[1].replace("-", "_") if option else ""
        if name in ("read_only", "super_read_only"):
            return RefusingState(NO_WRITES, WRITABLE_REMEDY)
        remedy = f"start the server again without {name or 'the option that is named'}"
        return RefusingState("the {side} runs with an option that forbids the statement", remedy)
    if code == _SCHEMA_READ_ONLY:
        schema = _SCHEMA.search(message)
        name = schema[1].replace("`", "``") if schema else "..."
        return RefusingState(NO_WRITES, f"as an administrator: ALTER SCHEMA `{name}` READ ONLY = 0")
    if code in _OF_ENGINE and _ENGINE_READ_ONLY.search(message):
        return RefusingState(NO_WRITES, _WITHOUT)
    known = _REFUSED.get(code)
    return None if known is None else RefusingState(*known)
