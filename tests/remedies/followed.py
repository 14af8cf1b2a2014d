"""Takes out of a printed remedy what is to be done."""

from __future__ import annotations

import re

_STATEMENT = re.compile(
    r"(?:ALTER|CREATE|DROP|GRANT|SELECT|SET|TRUNCATE|DELETE|COMMIT|ROLLBACK|XA)\b.*", re.DOTALL
)


def statements(remedy: str) -> list[str]:
    """The SQL statements of a remedy, as they are printed: what stands before one, between two and behind is
    no SQL.

    >>> statements("as the owner: ALTER TABLE t SET LOGGED; then start again")
    ['ALTER TABLE t SET LOGGED']
    """
    pieces = remedy.replace(": ", ";").split(";")
    return [found[0].strip() for piece in pieces if (found := _STATEMENT.match(piece.strip())) is not None]
