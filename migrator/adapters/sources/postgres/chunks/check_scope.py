"""Asks PostgreSQL whether it can read what a dump request wants, before the request exists."""

from __future__ import annotations

from typing import Any

import psycopg

from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import RequestError
from migrator.model.event import Key
from migrator.model.requests.predicate import grammatical
from migrator.model.requests.request import Scope
from migrator.model.table import TableSchema


def check_scope(connection: Any, table: TableSchema, scope: Scope) -> None:
    """Raises ``RequestError`` naming field, value and the server's words; changes nothing.

    Each statement has a parameter, so it takes the protocol that refuses a second statement in the text.
    """
    connection.execute("BEGIN READ ONLY")
    try:
        for key in (scope.low, scope.high, *scope.keys):
            if key is not None:
                _check_key(connection, table, key)
        if scope.predicate:
            _check_predicate(connection, table, scope.predicate)
    finally:
        connection.execute("ROLLBACK")


def _check_key(connection: Any, table: TableSchema, key: Key) -> None:
    columns = {column.name: column for column in table.columns}
    for name, value in zip(table.key, key, strict=True):
        text = "\\x" + value.hex() if isinstance(value, bytes) else value
        try:
            connection.execute(f"SELECT $1::text::{columns[name].source_type}", [text])
        except (psycopg.DataError, psycopg.IntegrityError) as error:  # the latter: what a domain forbids
            raise RequestError(
                f"{value!r} can't be a key of {table.id}",
                where=f"column {name} ({columns[name].source_type}), value {value!r}",
                cause=str(error.diag.message_primary or error),
                remedy="give the key as the source prints it",
            ) from error


def _check_predicate(connection: Any, table: TableSchema, predicate: str) -> None:
    """Has the server check what the grammar has passed: both forms must be right. Within CASE no closing parenthesis
    ends the expression, within WHERE no aggregate is allowed. So what passes is one expression over one row.
    """
    grammatical(predicate, table, '"')
    name = quoted(table.id)
    for statement in (
        f"SELECT CASE WHEN {predicate}\nTHEN 1 ELSE 0 END FROM {name} AS source_row WHERE $1::text IS NULL LIMIT 0",
        f"SELECT 1 FROM {name} AS source_row WHERE $1::text IS NULL AND ({predicate}\n) LIMIT 0",
    ):
        try:
            connection.execute(statement, ["x"])
        except (psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError) as error:
            raise RequestError(
                f"the predicate can't be asked of {table.id}",
                where=f"--where {predicate!r}",
                cause=str(error.diag.message_primary or error),
                remedy="give one SQL expression over the table's columns that is true or false for a row",
            ) from error
