"""Pinned sessions of the judge on MySQL or MariaDB, alike whatever the server, the login and ``init_connect`` say.

The judge's own list: were it the migrator's, one wrong value would make both sides of a comparison wrong alike. A
session is begun anew (COM_RESET_CONNECTION: no temporary table hides another, no clock stands still), each setting
that the server knows is given a value, never DEFAULT, and all are read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymysql.constants.COMMAND import COM_QUERY
from pymysql.cursors import Cursor

from migrator.errors import VerifyError

_RESET_CONNECTION = COM_QUERY + 28
_EVERY_ROW = 2**64 - 1
_UTF8 = "utf8mb4"
_TEXT_MAX_BYTES = 64 << 20
"""The largest text, in bytes, that the texts of a chunk's rows are gathered into."""
_PINS: Mapping[str, Mapping[str, str | int]] = {
    "both": {
        # what is read
        "sql_select_limit": _EVERY_ROW,
        "max_join_size": _EVERY_ROW,
        "sql_big_selects": 1,
        "sql_auto_is_null": 0,
        "autocommit": 1,
        "completion_type": "NO_CHAIN",
        "time_zone": "+00:00",
        # how it is written as text, gathered and ordered
        "character_set_client": _UTF8,
        "character_set_connection": _UTF8,
        "character_set_results": _UTF8,
        "group_concat_max_len": _TEXT_MAX_BYTES,
        "max_sort_length": 1 << 14,
        "sort_buffer_size": 1 << 21,
        "div_precision_increment": 4,
        "default_week_format": 0,
        "lc_time_names": "en_US",
        "lc_messages": "en_US",
        # what the server warns of
        "sql_notes": 1,
        # for how long
        "wait_timeout": 604_800,
        "net_read_timeout": 600,
        "net_write_timeout": 600,
        "lock_wait_timeout": 86_400,
    },
    "mariadb": {
        # No word of it changes how text, numbers or times are read.
        "sql_mode": "STRICT_TRANS_TABLES",
        "character_set_collations": "",
        "collation_connection": "utf8mb4_general_ci",
        "old_mode": "UTF8_IS_UTF8MB3",
        "old": 0,
        "new_mode": "",
        "tx_isolation": "REPEATABLE-READ",
        "tx_read_only": 0,
        "max_statement_time": 0,
        "idle_transaction_timeout": 0,
        "idle_readonly_transaction_timeout": 0,
        "idle_write_transaction_timeout": 0,
        "max_recursive_iterations": 2**32 - 1,
        "standard_compliant_cte": 1,
        "default_regex_flags": "",
        "note_verbosity": "basic",
        "max_error_count": 64,
        "query_cache_type": 0,
        "wsrep_dirty_reads": 0,
        "system_versioning_asof": "DEFAULT",
    },
    "mysql": {
        "sql_mode": "STRICT_TRANS_TABLES",
        "default_collation_for_utf8mb4": "utf8mb4_0900_ai_ci",
        "collation_connection": "utf8mb4_0900_ai_ci",
        "transaction_isolation": "REPEATABLE-READ",
        "transaction_read_only": 0,
        "max_execution_time": 0,
        "cte_max_recursion_depth": 2**32 - 1,
        "windowing_use_high_precision": 1,
        "use_secondary_engine": "OFF",
        "resultset_metadata": "FULL",
        "information_schema_stats_expiry": 0,
        "show_gipk_in_create_table_and_information_schema": 1,
        "show_old_temporals": 0,
    },
}
_ONLY_LOOKED_AT = ("system_versioning_asof", "show_old_temporals", "default_collation_for_utf8mb4")
"""Variables that are read and not set: no value names the wanted state, or a user without special rights may not set
it."""
_LISTS = ("sql_mode", "old_mode", "new_mode", "note_verbosity")
_SPELT = {"ON": "1", "OFF": "0", "YES": "1", "NO": "0"}


def pin_judge(session: Any, where: str, left: tuple[str, ...] = ()) -> None:
    """Makes a PyMySQL connection a session of the judge.

    Args:
        session: a connection without anything under way.
        where: its server, for messages.
        left: settings that stay the server's: what an application is asked for is its own affair.

    Raises ``VerifyError`` naming what doesn't hold, and PyMySQL's errors.
    """
    session._execute_command(_RESET_CONNECTION, b"")
    session._read_packet()
    # Else the next answer could be cut, or refused.
    bounds = f"sql_select_limit = {_EVERY_ROW}, max_join_size = {_EVERY_ROW}, sql_big_selects = 1"
    _rows(session, f"SET SESSION {bounds}")
    [(mode,)] = _rows(session, "SELECT @@SESSION.sql_mode")
    # What follows has words that some modes read otherwise: '' is NULL by EMPTY_STRING_IS_NULL.
    _rows(session, "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'")
    known = {
        _text(name).lower() for name, _ in _rows(session, f"SHOW SESSION VARIABLES WHERE {_named(left)}")
    }
    wanted = {name: str(value) for name, value in _all(session, left).items() if name in known}
    quoted = {n: v if v.isdigit() else f"'{v}'" for n, v in wanted.items() if n not in _ONLY_LOOKED_AT}
    _rows(session, "SET SESSION " + ", ".join(f"{name} = {value}" for name, value in quoted.items()))
    if "sql_mode" in left:
        _rows(session, "SET SESSION sql_mode = %s", [_text(mode)])
    [found] = _rows(session, "SELECT " + ", ".join(f"@@SESSION.{name}" for name in wanted))
    wrong = {
        name: _text(value)
        for (name, should), value in zip(wanted.items(), found, strict=True)
        if not _same(name, should, _text(value))
    }
    if wrong:
        raise VerifyError(
            "the judge's session can't be set up: it would read other values, or other rows",
            where=where,
            cause=", ".join(f"{name} is {value}" for name, value in wrong.items()),
            remedy="as an administrator: "
            + "; ".join(f"SET GLOBAL {name} = {wanted[name]}" for name in wrong),
        )


def judged_names(kind: str) -> frozenset[str]:
    """Every setting that the judge pins or refuses on ``mysql`` or ``mariadb``, of any version."""
    return frozenset({*_PINS["both"], *_PINS[kind]})


def _all(session: Any, left: tuple[str, ...]) -> dict[str, str | int]:
    kind = "mariadb" if "mariadb" in session.get_server_info().lower() else "mysql"
    return {name: value for name, value in {**_PINS["both"], **_PINS[kind]}.items() if name not in left}


def _named(left: tuple[str, ...]) -> str:
    names = {name for pins in _PINS.values() for name in pins if name not in left}
    return "Variable_name IN (" + ", ".join(f"'{name}'" for name in sorted(names)) + ")"


def _rows(session: Any, statement: str, values: list[str] | None = None) -> list[tuple[Any, ...]]:
    with session.cursor(Cursor) as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _same(name: str, wanted: str, found: str) -> bool:
    if name in _LISTS:
        return set(filter(None, found.upper().split(","))) == set(filter(None, wanted.upper().split(",")))
    spelt = _SPELT.get(found.upper(), found)
    if wanted.isdigit():
        return float(wanted) == float(spelt)
    return wanted.upper() in (found.upper(), spelt.upper())
