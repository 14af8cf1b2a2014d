"""Accounts that may write past the log: ``SET sql_log_bin = 0`` takes a session's changes out of it, unnoticed.

MySQL: "Restricting session system variables" needs SESSION_VARIABLES_ADMIN, SYSTEM_VARIABLES_ADMIN or SUPER.
    MariaDB: BINLOG ADMIN, and on 10.11 SUPER as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from migrator.connections.mysql.sql import query, quote
from migrator.model.finding import Finding

_WITH_RIGHTS = (
    "SELECT DISTINCT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN"
    " ('SUPER', 'BINLOG ADMIN', 'SYSTEM_VARIABLES_ADMIN', 'SESSION_VARIABLES_ADMIN')"
)
_RIGHTS = frozenset(re.findall("'(.+?)'", _WITH_RIGHTS))
_THE_SERVERS_OWN = ("'mysql.", "'mariadb.sys'")
"""Accounts that nobody can log in with."""
_MOST_NAMES = 10


def who_may_write_past_the_log(connection: Any, where: str) -> Iterator[Finding]:
    """The accounts and roles that may, as a warning; or that this login can't see them."""
    if not _sees_accounts(connection):
        yield Finding(
            "sql_log_bin",
            where,
            "the user may not see which accounts may write past the log (SET sql_log_bin = 0)",
            f"ask an administrator: {_WITH_RIGHTS}; `migrator verify` finds what such a session wrote",
            fatal=False,
        )
        return
    names = sorted({str(row[0]) for row in query(connection, _WITH_RIGHTS)} | set(_roles(connection)))
    names = [name for name in names if not name.startswith(_THE_SERVERS_OWN)]
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield Finding(
            "sql_log_bin",
            where,
            f"may write past the log (SET sql_log_bin = 0): {', '.join(names[:_MOST_NAMES])}{more}",
            "see that no program does with them; `migrator verify` finds what such a session wrote",
            fatal=False,
        )


def _sees_accounts(connection: Any) -> bool:
    """Returns whether the login sees other accounts. Without SELECT on the database ``mysql`` it sees itself only."""
    return (
        int(query(connection, "SELECT COUNT(DISTINCT GRANTEE) FROM information_schema.USER_PRIVILEGES")[0][0])
        > 1
    )


def _roles(connection: Any) -> Iterator[str]:
    """MariaDB's roles with such a right; MySQL has them among the accounts."""
    if not query(connection, "SHOW COLUMNS FROM mysql.user LIKE 'is\\_role'"):
        return
    for (role,) in query(connection, "SELECT User FROM mysql.user WHERE is_role = 'Y'"):
        statements = " ; ".join(row[0] for row in query(connection, f"SHOW GRANTS FOR {quote(role)}")).upper()
        on_server = re.findall(r"GRANT ([^;]*?) ON \*\.\* ", statements)
        rights = {right.strip() for privileges in on_server for right in privileges.split(",")}
        if rights & (_RIGHTS | {"ALL PRIVILEGES"}):
            yield f"role {quote(role)}"
