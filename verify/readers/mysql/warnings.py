"""Warnings of a MySQL or MariaDB server after a read: a missing value may be one that it couldn't print."""

from __future__ import annotations

from typing import Any

from pymysql.cursors import Cursor

from migrator.errors import VerifyError

_TOO_LARGE = 1301
_ONLY_SLOW = 3170
"""A plan that would have taken too much memory was given up for a plainer one."""


def heed(session: Any, number: int) -> None:
    """Raises ``VerifyError`` if the session's last statement has so many warnings, one of them about a value."""
    if not number:
        return
    with session.cursor(Cursor) as cursor:
        cursor.execute("SHOW WARNINGS")
        kept = [(int(code), _text(message)) for _, code, message in cursor.fetchall()]
    about = [warning for warning in kept if warning[0] != _ONLY_SLOW]
    if not about and len(kept) == number:
        return
    code, message = about[0] if about else (0, f"it gave {number} warnings and kept {len(kept)}")
    raise VerifyError(
        "a server warns that it doesn't read what is stored",
        where=f"{_text(session.user)}@{session.host}:{session.port}",
        cause=f"{message} (warning {code})",
        remedy="on this server: SET GLOBAL max_allowed_packet = 1073741824, then verify again"
        if code == _TOO_LARGE
        else "correct the value that the server names, then verify again",
    )


def _text(message: Any) -> str:
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
