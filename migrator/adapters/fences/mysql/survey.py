"""A look at who can write tables on MySQL or MariaDB, and by which ways that a fence may not close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrator.adapters.fences.mysql.rights import WRITES, Right, holders, rights, role_members, unseen
from migrator.adapters.fences.mysql.session import MysqlFenceSession, parted
from migrator.connections.mysql.sql import quote
from migrator.model.cutover.fence import Choice, FenceKind, Survey, WayRound, Writer
from migrator.model.table import TableId

_SYSTEM = ("mysql", "information_schema", "performance_schema", "sys", "migrator")
_CASCADES = (
    "SELECT DISTINCT k.UNIQUE_CONSTRAINT_SCHEMA, k.REFERENCED_TABLE_NAME, k.CONSTRAINT_SCHEMA, k.TABLE_NAME"
    " FROM information_schema.REFERENTIAL_CONSTRAINTS k"
    " WHERE (k.DELETE_RULE IN ('CASCADE', 'SET NULL') OR k.UPDATE_RULE IN ('CASCADE', 'SET NULL'))"
)
_ROUTINES = (
    "SELECT LOWER(ROUTINE_TYPE), ROUTINE_SCHEMA, ROUTINE_NAME, DEFINER FROM information_schema.ROUTINES"
    " WHERE SECURITY_TYPE = 'DEFINER'"
    " UNION ALL SELECT 'event', EVENT_SCHEMA, EVENT_NAME, DEFINER FROM information_schema.EVENTS"
    " WHERE STATUS = 'ENABLED'"
)
_VIEWS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, DEFINER, VIEW_DEFINITION FROM information_schema.VIEWS"
    " WHERE SECURITY_TYPE = 'DEFINER' AND IS_UPDATABLE = 'YES'"
)
_TRIGGERS = (
    "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, DEFINER, EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, ACTION_STATEMENT"
    " FROM information_schema.TRIGGERS"
)
_TRUSTED = "SELECT @@GLOBAL.log_bin, @@GLOBAL.log_bin_trust_function_creators, CURRENT_USER()"
_DATABASES = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA"
_UNTRANSACTED = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    " AND TABLE_NAME = %s"
)


def survey(session: MysqlFenceSession, tables: Sequence[TableId], our_login: str) -> Survey:
    """Returns which kinds the server would let us raise (see ``ports.fence``)."""
    every, roles = rights(session), role_members(session)
    writers = _others(holders(every, roles, WRITES, tables), our_login, roles)
    ours = _missing_login(every, roles, tables, our_login)
    # What keeps every kind from being raised.
    absent = [*_no_tables(session, tables), *unseen(session)]
    replicated = tuple(
        WayRound(
            "replication",
            str(name) or "default",
            "changes that this server gets as a replica fire no triggers",
        )
        for name, *_ in session.rows(session.words.channels)
    )
    return Survey(
        tuple(tables),
        tuple(Writer(account, by) for account, by in writers.items()),
        (
            Choice(
                FenceKind.TRIGGERS,
                (*absent, *_untrusted(session, every), *ours),
                (*replicated, *_cascades(session, tables), *_emptiers(every, roles, tables, our_login)),
            ),
            Choice(
                FenceKind.ACCOUNT_LOCK,
                (*absent, *ours),
                (*replicated, *_accounts(writers), *_definers(session, tables, writers)),
                says_where=False,
            ),
            _read_only(session, tables, every, (*absent, *ours), our_login, replicated),
        ),
    )


def _others(
    found: Mapping[str, tuple[str, ...]], our_login: str, roles: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Accounts that can log in, without ours: a role can't."""
    return {
        account: by
        for account, by in found.items()
        if account not in roles
        and parted(account)[0] not in ("", our_login, "mariadb.sys")
        and "@" in account
    }


def _missing_login(
    every: Sequence[Right], roles: Mapping[str, Sequence[str]], tables: Sequence[TableId], login: str
) -> list[str]:
    if not login:
        return []
    for table in tables:
        for privilege in WRITES:
            able = holders(every, roles, (privilege,), (table,))
            if not any(parted(account)[0] == login for account in able):
                return [f"login {login}, which is to go on writing, has no {privilege} on {table}"]
    return []


def _no_tables(session: MysqlFenceSession, tables: Sequence[TableId]) -> list[str]:
    return [
        f"there is no table {table}"
        for table in tables
        if not session.rows(_UNTRANSACTED, (table.schema, table.name))
    ]


def _untrusted(session: MysqlFenceSession, every: Sequence[Right]) -> list[str]:
    logged, trusted, account = session.rows(_TRUSTED)[0]
    may = any(one.holder == account and one.privilege == "SUPER" for one in every)
    if logged and not trusted and not may:
        return ["triggers need SUPER or log_bin_trust_function_creators = 1, as the server has a binary log"]
    return []


def _cascades(session: MysqlFenceSession, tables: Sequence[TableId]) -> list[WayRound]:
    inside = {(table.schema, table.name) for table in tables}
    return [
        WayRound(
            "cascade", f"{schema}.{name}", f"changes of its rows are carried on to {child}, without triggers"
        )
        for schema, name, child_schema, child in session.rows(_CASCADES)
        if (child_schema, child) in inside and (schema, name) not in inside
    ]


def _emptiers(
    every: Sequence[Right], roles: Mapping[str, Sequence[str]], tables: Sequence[TableId], our_login: str
) -> list[WayRound]:
    able = _others(holders(every, roles, ("DROP",), tables), our_login, roles)
    return [
        WayRound("truncate", account, "TRUNCATE and DROP fire no triggers, and the account has DROP")
        for account in able
    ]


def _accounts(writers: Mapping[str, tuple[str, ...]]) -> list[WayRound]:
    return [
        WayRound("account", account, f"it can write by {', '.join(by)}", account)
        for account, by in writers.items()
    ]


def _definers(
    session: MysqlFenceSession, tables: Sequence[TableId], writers: Mapping[str, tuple[str, ...]]
) -> list[WayRound]:
    """Programs that run with the rights of an account that can write, though nobody logs in as it."""
    inside = {(table.schema, table.name) for table in tables}
    ways = [
        WayRound(str(kind), f"{schema}.{name}", f"it runs with the rights of {definer}, who can write")
        for kind, schema, name, definer in session.rows(_ROUTINES)
        if definer in writers and schema not in _SYSTEM[:4]
    ]
    ways += [
        WayRound("view", f"{schema}.{name}", f"writes through it have the rights of {definer}, who can write")
        for schema, name, definer, does in session.rows(_VIEWS)
        if definer in writers and _names_one(does, tables)
    ]
    ways += [
        WayRound("trigger", f"{schema}.{name}", f"it runs with the rights of {definer}, who can write")
        for schema, name, definer, on_schema, on, does in session.rows(_TRIGGERS)
        if definer in writers and (on_schema, on) not in inside and _names_one(does, tables)
    ]
    return ways


def _names_one(does: object, tables: Sequence[TableId]) -> bool:
    text = str(does).lower()
    return any(table.name.lower() in text or quote(table.name).lower() in text for table in tables)


def _read_only(
    session: MysqlFenceSession,
    tables: Sequence[TableId],
    every: Sequence[Right],
    obstacles: Sequence[str],
    our_login: str,
    replicated: Sequence[WayRound],
) -> Choice:
    ours = {table.schema for table in tables}
    others = [
        name for (name,) in session.rows(_DATABASES) if name.lower() not in _SYSTEM and name not in ours
    ]
    beside = [f"the server holds other databases too: {', '.join(sorted(others))}"] if others else []
    words = session.words
    exempt = sorted({one.holder for one in every if words.exempt and one.privilege == words.exempt})
    passing = [
        WayRound("account", account, f"it has {words.exempt}, which passes {words.read_only[0]}")
        for account in exempt
        if parted(account)[0] != our_login
    ]
    restart = (
        [] if words.keep else [WayRound("restart", "server", f"{words.read_only[0]} ends with the server")]
    )
    return Choice(
        FenceKind.READ_ONLY,
        (*beside, *obstacles),
        (*replicated, *passing, *restart),
        lets_us_write=any(parted(account)[0] == our_login for account in exempt),
        says_where=False,
    )
