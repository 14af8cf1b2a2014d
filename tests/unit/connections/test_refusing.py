"""States in which servers refuse statements whatever rights the login has, by errors that they were seen with."""

from __future__ import annotations

import psycopg
import pymysql
import pytest

from migrator.connections.refusing import refusing_state

READ_ONLY = "The MySQL server is running with the --{} option so it cannot execute this statement"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (pymysql.err.OperationalError(1290, READ_ONLY.format("read-only")), "SET GLOBAL read_only = OFF"),
        (
            pymysql.err.OperationalError(1290, READ_ONLY.format("super-read-only")),
            "SET GLOBAL read_only = OFF",
        ),
        (
            pymysql.err.OperationalError(1290, READ_ONLY.format("max-user-connections=0")),
            "max_user_connections",
        ),
        (pymysql.err.OperationalError(1290, "Servern"), "without the option that is named"),
        (
            pymysql.err.OperationalError(3989, "Schema 'n`w' is in read only mode."),
            "ALTER SCHEMA `n``w` READ ONLY",
        ),
        (
            pymysql.err.OperationalError(1226, "User 'u' has exceeded the 'max_updates' resource"),
            "ALTER USER",
        ),
        (pymysql.err.OperationalError(1036, "Table 't' is read only"), "innodb_read_only"),
        (pymysql.err.OperationalError(1015, "Can't lock file (errno: 165 - Table is read only)"), "innodb"),
        (
            pymysql.err.OperationalError(1881, "Operation not allowed when innodb_force_recovery > 0."),
            "innodb",
        ),
        (psycopg.errors.ReadOnlySqlTransaction("..."), "SELECT pg_promote()"),
        (psycopg.errors.TransactionTimeout("..."), "RESET transaction_timeout"),
    ],
)
def test_a_state_is_told_by_its_code(error: Exception, remedy: str) -> None:
    state = refusing_state(error)
    assert state is not None
    assert remedy in state.remedy
    assert "GRANT" not in state.remedy
    assert "{" not in state.problem_of("target")


@pytest.mark.parametrize(
    "error",
    [
        None,
        OSError(2, "nothing there"),
        pymysql.err.OperationalError(1142, "INSERT command denied to user 'u' for table 'read_only'"),
        pymysql.err.OperationalError(1005, "Can't create table (errno: 150)"),
        psycopg.errors.InsufficientPrivilege("permission denied"),
    ],
)
def test_a_right_that_is_missing_is_no_state(error: Exception | None) -> None:
    assert refusing_state(error) is None
