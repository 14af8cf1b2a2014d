"""The dialect in which MySQL writes and prints rows."""

from __future__ import annotations

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.dialect import Dialect


def _double_text(value: float) -> str:
    """Prints a double as MariaDB does, but minus zero keeps its sign."""
    text = value_text.double_text(value)
    return "-0" if text == "0" and str(value)[0] == "-" else text


MYSQL = Dialect(
    character=frozenset((types.STRING, types.VAR_STRING, types.VARCHAR, types.BLOB, types.VECTOR)),
    double_text=_double_text,
    collations="COLLATIONS",
)
