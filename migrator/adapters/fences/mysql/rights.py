"""Accounts that may change tables on MySQL or MariaDB, by whatever grant: global, of databases by patterns, of
tables, of columns, or by a role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.errors import CutoverError
from migrator.model.table import TableId

WRITES = ("INSERT", "UPDATE", "DELETE")
_GRANTS = (
    "SELECT GRANTEE, PRIVILEGE_TYPE, '%', '' FROM information_schema.USER_PRIVILEGES"
    " UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, '' FROM information_schema.SCHEMA_PRIVILEGES"
    " UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLE_PRIVILEGES"
    " UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMN_PRIVILEGES"
)
_GLOBAL = re.compile(r"GRANT (.+?) ON \*\.\* TO ", re.I)
_ACCOUNT = re.compile(r"'(.*)'@'(.*)'")


@dataclass(frozen=True, slots=True)
class Right:
    """One privilege of an account or role.

    Attributes:
        holder: ``user@host``.
        privilege: such as ``INSERT``.
        pattern: of databases, as LIKE takes it.
        table: empty for every table of them.
    """

    holder: str
    privilege: str
    pattern: str
    table: str

    def covers(self, table: TableId) -> bool:
        """Tells whether the privilege holds for a table."""
        if self.table:
            return (self.pattern, self.table) == (table.schema, table.name)
        return like(self.pattern, table.schema)


def like(pattern: str, name: str) -> bool:
    """Tells whether a name fits a pattern of GRANT: ``%`` and ``_`` stand for others unless a backslash is before
    them."""
    parts = re.findall(r"\\.|.", pattern, re.S)
    wild = {"%": ".*", "_": "."}
    return (
        re.fullmatch("".join(wild.get(part, re.escape(part[-1])) for part in parts), name, re.S) is not None
    )


def plain(grantee: str) -> str:
    """The account without the quotes of ``information_schema``."""
    found = _ACCOUNT.fullmatch(grantee)
    return f"{found[1]}@{found[2]}" if found else grantee.strip("'")


def rights(session: MysqlFenceSession) -> list[Right]:
    """Every privilege that the login may see."""
    return [
        Right(plain(str(grantee)), str(privilege), str(pattern), str(table))
        for grantee, privilege, pattern, table in session.rows(_GRANTS)
    ]


def holders(
    every: Iterable[Right],
    roles: Mapping[str, Sequence[str]],
    privileges: Sequence[str],
    tables: Sequence[TableId],
) -> dict[str, tuple[str, ...]]:
    """Accounts with one of these privileges on one of the tables, and the roles by which they have it, or ``grant``.

    Args:
        every: all privileges.
        roles: role -> those that have it.
        privileges: which count.
        tables: of the plan.
    """
    direct = {
        one.holder
        for one in every
        if one.privilege in privileges and any(one.covers(table) for table in tables)
    }
    found: dict[str, set[str]] = {}
    for holder in direct:
        todo, seen = [holder], {holder}
        while todo:
            member = todo.pop()
            found.setdefault(member, set()).add("grant" if member == holder else f"role {holder}")
            more = [one for one in roles.get(member, ()) if one not in seen]
            seen.update(more)
            todo += more
    return {member: tuple(sorted(by)) for member, by in sorted(found.items())}


def role_members(session: MysqlFenceSession) -> dict[str, list[str]]:
    """Returns role -> accounts and roles that have it."""
    members: dict[str, list[str]] = {}
    for role, member in session.rows(session.words.roles):
        members.setdefault(str(role), []).append(str(member))
    return members


def unseen(session: MysqlFenceSession) -> list[str]:
    """Returns the rights that our session lacks to see others' transactions and sessions, each with its GRANT.

    Without them the server may list nothing and raise no error, as if there was nobody. ``SHOW GRANTS`` lists the
    session's own rights and those of its active roles.
    """
    has: set[str] = set()
    for (line,) in session.rows("SHOW GRANTS"):
        if found := _GLOBAL.match(str(line)):
            has.update(one.strip().upper() for one in found[1].split(","))
    if {"ALL", "ALL PRIVILEGES"} & has:
        return []
    ((account,),) = session.rows("SELECT CURRENT_USER()")
    return [
        f"the fence's login {account} can't see others' transactions: GRANT {right} ON *.* to it"
        for right in session.words.sees
        if right not in has
    ]


def must_see(session: MysqlFenceSession) -> None:
    """Raises ``CutoverError`` where others' transactions and sessions are hidden from us."""
    if lacking := unseen(session):
        raise CutoverError(
            "the fence's login can't see others' transactions and sessions",
            where=str(session.words.sees[0]),
            cause="; ".join(lacking),
            remedy=f"GRANT {', '.join(session.words.sees)} ON *.* to the fence's login, and try again",
        )
