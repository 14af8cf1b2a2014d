"""Names of what belongs to the mirror in MySQL and MariaDB. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.model.reach import Reach
from migrator.model.table import TableId

GRAIN = "~grain "
"""Begins the names of columns that the mirror's server computes."""
KEY = "~key"
"""The index over a key with bytes in it; and, with a number behind it, the short form of each column of bytes."""
ROW = "~row"
"""Numbers the rows of a table with such a key: some servers demand a primary key."""
_MOST_CHARACTERS = 64
_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_OURS = frozenset({"chunk", "number"})


def mirror_database(database: str) -> str:
    """The database beside the target that holds its mirror."""
    return _fitting(f"{database}_mirror")


def mirror_table(database: str, migration: str, table: TableId) -> TableId:
    """Names the table that mirrors a source table."""
    return TableId(mirror_database(database), _plain(table.name, f"{migration}."))


def number_table(database: str, migration: str, reach: Reach) -> TableId:
    """Names the table that keeps a computed grain's values: the key of the grain's table, and ``number``."""
    return TableId(mirror_database(database), _plain(reach.name, f"{migration}.grain."))


def control_table(database: str, name: str) -> str:
    """Quoted name of a table about the mirror; ``filled``, ``filling`` or ``moved``."""
    return qualified(TableId(mirror_database(database), name))


def place(name: str) -> str:
    """A mirrored column: its own name if plain. These servers take no heed of case, and cut names."""
    return quoted(_plain(name))


def grain_column(grain: Sequence[str]) -> str:
    """The column with a grain's number."""
    return f"{GRAIN}{_digest(repr(tuple(grain)))}"


def index_name(columns: Sequence[str]) -> str:
    """The index over these columns."""
    return f"m_{_digest(repr(tuple(columns)))}"


def _plain(name: str, before: str = "") -> str:
    if _PLAIN.fullmatch(name) and name not in _OURS and len(before + name) <= _MOST_CHARACTERS:
        return before + name
    return f"{before}~{_digest(name)}"


def _fitting(name: str) -> str:
    if len(name) <= _MOST_CHARACTERS:
        return name
    return f"{name[: _MOST_CHARACTERS - 25]}~{_digest(name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
