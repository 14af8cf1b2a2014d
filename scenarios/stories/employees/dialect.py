"""The new personnel schema is written for MySQL and MariaDB, as it was asked for; here it is for PostgreSQL too."""

from __future__ import annotations

import re

_INSTEAD = (
    (r"\) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", ")"),
    (r"\bBINARY\(16\)", "BYTEA"),
    (r"\bSMALLINT UNSIGNED\b", "INTEGER"),
    (r"\bJSON\b", "JSONB"),
    (r"\b(VARCHAR\(\d+\))", r'\1 COLLATE "C"'),
    (r"\bCONCAT\(given_name, ' ', family_name\)\) VIRTUAL", "given_name || ' ' || family_name) STORED"),
)


def statements(script: str, dialect: str) -> list[str]:
    """The statements of a revision, for SQLAlchemy's name of the database at hand."""
    for here, there in _INSTEAD if dialect == "postgresql" else ():
        script = re.sub(here, there, script)
    return script.split(";\n")
