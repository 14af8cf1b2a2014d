"""The state of our sessions on MySQL or MariaDB, whatever the server's configuration says: one list for both engines.

A session begins with what its server's administrator wrote (``SET GLOBAL``, option files), with what the account
brings (MariaDB's ``MAX_STATEMENT_TIME``), and with what ``init_connect`` did: settings, temporary tables that hide
others, locks, an open transaction, a clock that stands still. So each session of ours is first begun anew
(COM_RESET_CONNECTION, which runs no ``init_connect``), then every setting of the list that the server knows is set,
and all of them are read back: what doesn't hold is an error that names it. No value is ``DEFAULT``, which is the
server's to define.

What a purpose needs otherwise (``READS``, ``WRITES``, ``REVISES``) stands on top of what all
sessions share. The judge has a list of its own (``verify.readers.mysql.pins``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymysql.constants import CLIENT
from pymysql.err import MySQLError

from migrator.errors import ConnectionFailed

Settings = Mapping[str, str]
"""Names of settings, and their values as SQL."""

_UNBOUNDED = "18446744073709551615"
_DAY_S = 86_400
_ALL: Settings = {
    # Rows: none is left out, no statement is cut short, no value is cut.
    "sql_select_limit": _UNBOUNDED,
    "max_join_size": _UNBOUNDED,  # before sql_big_selects, which it changes
    "sql_big_selects": "1",
    "sql_safe_updates": "0",
    "sql_auto_is_null": "0",
    "group_concat_max_len": str(1 << 20),
    "max_sort_length": str(1 << 14),  # longer than a key can be
    "sort_buffer_size": str(1 << 21),  # holds some of those
    # Meaning of words, texts, numbers and times.
    "character_set_client": "'utf8mb4'",
    "character_set_connection": "'utf8mb4'",
    "character_set_results": "'utf8mb4'",
    "time_zone": "'+00:00'",
    "lc_time_names": "'en_US'",
    "lc_messages": "'en_US'",  # errors are told apart by their text in some places
    "div_precision_increment": "4",
    "default_week_format": "0",
    "sql_quote_show_create": "1",
    "explicit_defaults_for_timestamp": "1",
    # Constraints, and what counts as a problem.
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "sql_notes": "1",
    "sql_warnings": "0",
    "updatable_views_with_limit": "'YES'",
    # Transactions.
    "autocommit": "1",
    "completion_type": "'NO_CHAIN'",
    "innodb_lock_wait_timeout": "50",
    "lock_wait_timeout": str(_DAY_S),
    # How long a session may be silent, or slow.
    "wait_timeout": str(7 * _DAY_S),
    "net_read_timeout": "600",
    "net_write_timeout": "600",
    # Tables of ours, and of revisions.
    "default_storage_engine": "'InnoDB'",
    "default_tmp_storage_engine": "'InnoDB'",
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
}
_ONLY: Mapping[str, Settings] = {
    "mariadb": {
        "sql_mode": "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION'",
        "character_set_collations": "''",  # before the collation of texts, which would follow it
        "collation_connection": "'utf8mb4_general_ci'",
        "old_mode": "'UTF8_IS_UTF8MB3'",
        "old": "0",
        "new_mode": "''",
        "tx_isolation": "'REPEATABLE-READ'",
        "tx_read_only": "0",
        "innodb_snapshot_isolation": "0",
        "check_constraint_checks": "1",
        "max_statement_time": "0",
        "idle_transaction_timeout": "0",
        "idle_readonly_transaction_timeout": "0",
        "idle_write_transaction_timeout": "0",
        "max_recursive_iterations": "4294967295",  # where it ends, rows are left out with a warning
        "standard_compliant_cte": "1",
        "default_regex_flags": "''",
        "note_verbosity": "'basic,explain'",
        "max_error_count": "64",
        "query_cache_type": "0",
        "sql_if_exists": "0",
        "system_versioning_alter_history": "'ERROR'",
        "system_versioning_insert_history": "0",
        "wsrep_dirty_reads": "0",
    },
    "mysql": {
        "sql_mode": "'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
        "NO_ENGINE_SUBSTITUTION'",
        "default_collation_for_utf8mb4": "'utf8mb4_0900_ai_ci'",
        "collation_connection": "'utf8mb4_0900_ai_ci'",
        "transaction_isolation": "'REPEATABLE-READ'",
        "transaction_read_only": "0",
        "max_execution_time": "0",
        "cte_max_recursion_depth": "4294967295",
        "windowing_use_high_precision": "1",
        "use_secondary_engine": "'OFF'",  # a copy that may be behind
        "resultset_metadata": "'FULL'",
        "information_schema_stats_expiry": "0",  # counters as they are, not as they were yesterday
        # A generated invisible primary key is a column of the log, so the catalog must show it.
        "show_gipk_in_create_table_and_information_schema": "1",
        "show_old_temporals": "0",
    },
}
_UNSETTABLE = {"system_versioning_asof": "DEFAULT"}
"""The values that only the server's administrator can set such that the newest rows are read."""
_RESTRICTED = frozenset({"show_old_temporals", "default_collation_for_utf8mb4"})
"""Set only where they are otherwise: the user needs a right for it."""
_BOUNDS = f"sql_select_limit = {_UNBOUNDED}, max_join_size = {_UNBOUNDED}, sql_big_selects = 1"
_FIRST = f"SET SESSION {_BOUNDS}, sql_mode = ''"
"""The first statement of a session: without it the answer to which settings there are could be cut, or refused."""

READS: Settings = {"sql_mode": "'ALLOW_INVALID_DATES'"}
"""Settings for a source. Zero, partial and impossible dates are values of the old schema: they compare as stored."""
# sql_mode: strict, so that a value that doesn't fit is an error; a zero in an AUTO_INCREMENT column is a value.
# Isolation: after waiting for the ledger's row lock the newest row must be seen, and no gaps are locked.
# foreign_key_checks: see ``adapters.targets.mysql.rows.writer``. autocommit off: after a deadlock the server has
# ended the transaction, and whatever were sent by mistake would begin another one that nobody commits.
WRITES: Settings = {
    "sql_mode": "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION'",
    "foreign_key_checks": "0",
    "autocommit": "0",
    "tx_isolation": "'READ-COMMITTED'",
    "transaction_isolation": "'READ-COMMITTED'",
}
"""Settings for a target."""
REVISES: Settings = {"autocommit": "0"}
"""Settings for Alembic and whatever else SQLAlchemy does: it ends transactions itself."""
ENGINE_OPTIONS: Mapping[str, Any] = {"client_flag": CLIENT.FOUND_ROWS}
"""Options of PyMySQL for SQLAlchemy, which counts the rows that an UPDATE found."""

_RESET_CONNECTION = 0x1F
_ON_OFF = {"on": "1", "yes": "1", "true": "1", "off": "0", "no": "0", "false": "0"}
_known: dict[tuple[str, str], tuple[str, ...]] = {}
"""Names that a server has, by its address and version."""


def pin(connection: Any, purpose: Settings, where: str) -> None:
    """Begins the connection's session anew, as ``purpose`` needs it, and proves that it is so.

    Args:
        connection: a driver's, with nothing under way in it.
        purpose: ``READS``, ``WRITES`` or ``REVISES``, with settings of its own on top where there are any.
        where: the server as messages name it.

    Raises ``ConnectionFailed`` with the names of what doesn't hold, and the driver's errors.
    """
    if hasattr(connection, "_execute_command"):  # a revision may come with another driver
        connection._execute_command(_RESET_CONNECTION, b"")
        connection._read_packet()
    rows_of(connection, _FIRST)
    wanted = _wanted(connection, purpose)
    rows_of(
        connection, _assignment({n: v for n, v in wanted.items() if n not in {*_RESTRICTED, *_UNSETTABLE}})
    )
    wrong = unheld(connection, wanted)
    if restricted := {name: wanted[name] for name in wrong if name in _RESTRICTED}:
        try:
            rows_of(connection, _assignment(restricted))
        except MySQLError as error:
            raise _refused(wrong, wanted, where, str(error)) from error
        wrong = unheld(connection, wanted)
    if wrong:
        raise _refused(wrong, wanted, where, "the server keeps another value for this session")


def pinned_names(kind: str) -> frozenset[str]:
    """Every setting that is pinned on ``mysql`` or ``mariadb``, if a server of its version has it."""
    return frozenset({*_ALL, *_ONLY[kind], *(_UNSETTABLE if kind == "mariadb" else ())})


def unheld(connection: Any, wanted: Settings) -> dict[str, str]:
    """Returns those of these settings that the session has otherwise, with what it has: asked in one statement."""
    names = list(wanted)
    [found] = rows_of(connection, "SELECT " + ", ".join(f"@@SESSION.{name}" for name in names))
    return {
        name: _text(value)
        for name, value in zip(names, found, strict=True)
        if _plain(name, _text(value)) != _plain(name, wanted[name].strip("'"))
    }


def rows_of(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    """All rows of one statement, whatever the connection's own cursors give. Raises the driver's errors."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement)
        found = list(cursor.fetchall())
    finally:
        cursor.close()
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in found]


def _wanted(connection: Any, purpose: Settings) -> dict[str, str]:
    version = str(connection.get_server_info())
    kind = "mariadb" if "mariadb" in version.lower() else "mysql"
    every = {**_ALL, **_ONLY[kind], **(_UNSETTABLE if kind == "mariadb" else {})}
    place = f"{getattr(connection, 'host', '')}:{getattr(connection, 'port', '')}", version
    names = _known.get(place)
    if names is None:
        listed = ", ".join(f"'{name}'" for name in every)
        there = {
            _text(row[0]).lower()
            for row in rows_of(connection, f"SHOW SESSION VARIABLES WHERE Variable_name IN ({listed})")
        }
        names = _known[place] = tuple(name for name in every if name in there)
    return {name: purpose.get(name, every[name]) for name in names}


def _assignment(settings: Settings) -> str:
    return "SET SESSION " + ", ".join(f"{name} = {value}" for name, value in settings.items())


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _plain(name: str, value: str) -> Any:
    """A value such that two spellings of it are equal."""
    if name in ("sql_mode", "old_mode", "new_mode", "note_verbosity"):
        return frozenset(part for part in value.upper().split(",") if part)
    lower = value.lower()
    try:
        return float(_ON_OFF.get(lower, lower))
    except ValueError:
        return lower


def _refused(wrong: Mapping[str, str], wanted: Settings, where: str, cause: str) -> ConnectionFailed:
    found = ", ".join(f"{name} is {value}" for name, value in wrong.items())
    statements = "; ".join(f"SET GLOBAL {name} = {wanted[name]}" for name in wrong)
    rights: Sequence[str] = [name for name in wrong if name in _RESTRICTED]
    return ConnectionFailed(
        "the session can't be set up: values would be read or written otherwise",
        where=where,
        cause=f"{found}: {cause}",
        remedy=f"as an administrator: {statements}"
        + (", or GRANT SESSION_VARIABLES_ADMIN ON *.* TO the user" if rights else ""),
    )
