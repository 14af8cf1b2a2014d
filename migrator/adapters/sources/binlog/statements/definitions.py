"""Definitions (CREATE, ALTER, DROP, RENAME) that are known to leave every existing table's rows where they are.

What isn't known here may do anything: MariaDB's CREATE OR REPLACE DATABASE drops all tables, and a later server's
statement may do what nobody thought of. So it stops the run where it could concern us.
"""

from __future__ import annotations

from collections.abc import Sequence

# fmt: off
_DEFINED = frozenset(
    ("DATABASE", "EVENT", "FUNCTION", "INDEX", "INSTANCE", "LIBRARY", "LOGFILE", "PACKAGE", "PREPARE",
     "PROCEDURE", "RESOURCE", "ROLE", "SCHEMA", "SEQUENCE", "SERVER", "SPATIAL", "TABLE", "TABLES",
     "TABLESPACE", "TEMPORARY", "TRIGGER", "UNDO", "USER", "VIEW")
)
# fmt: on
"""The things that may be defined; what is done to tables is judged by their names, see ``statements``."""
_HEAD = 15
"""Words in front of the kind: OR REPLACE, ALGORITHM = MERGE, DEFINER = name @ host, SQL SECURITY INVOKER,
UNIQUE."""
_DEFINE = frozenset(("CREATE", "ALTER", "DROP", "RENAME"))


def is_unknown(words: Sequence[str]) -> bool:
    """Returns whether a statement that writes no rows is a definition whose effect on tables isn't known.

    Args:
        words: of a statement that isn't one of those that drop, empty, rename or alter a table by its name.
    """
    first, *more = (word.upper() for word in words[: _HEAD + 1])
    if first not in _DEFINE:
        return False
    kind = next((word for word in more if word in _DEFINED), "")
    if first == "RENAME":
        return kind != "USER"
    if kind in ("DATABASE", "SCHEMA"):  # OR REPLACE drops its tables, UPGRADE gives it another name
        return "REPLACE" in more or "UPGRADE" in (word.upper() for word in words)
    return not kind
