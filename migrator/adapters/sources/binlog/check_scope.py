"""Asks MySQL or MariaDB whether it can read what a dump request wants, before the request exists."""

from __future__ import annotations

import re
from typing import Any

import pymysql

from migrator.adapters.sources.binlog.keyset import base_type, literal
from migrator.connections.mysql.sql import query, quote_table
from migrator.errors import RequestError, SourceError
from migrator.model.requests.predicate import grammatical
from migrator.model.requests.request import Scope
from migrator.model.table import Column, TableSchema

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_MOMENTS = {"date": "DATE", "datetime": "DATETIME(6)", "timestamp": "DATETIME(6)", "time": "TIME(6)"}


def check_scope(connection: Any, table: TableSchema, scope: Scope) -> None:
    """Raises ``RequestError`` naming field, value and the server's words; changes nothing."""
    columns = {column.name: column for column in table.columns}
    for key in (scope.low, scope.high, *scope.keys):
        if key is not None:
            for name, value in zip(table.key, key, strict=True):
                _check_value(connection, table, columns[name], value)
    if scope.predicate:
        _check_predicate(connection, table, scope.predicate)


def _check_value(connection: Any, table: TableSchema, column: Column, value: Any) -> None:
    moment = _MOMENTS.get(base_type(column))
    try:
        text = literal(column, value, connection.escape)
        _check_whole(column, value)
        if moment is not None and query(connection, f"SELECT CAST({text} AS {moment}) IS NULL")[0][0]:
            raise SourceError("no such moment", cause=f"the server can't read it as {moment}")
    except SourceError as error:
        raise RequestError(
            f"{value!r} can't be a key of {table.id}",
            where=f"column {column.name} ({column.source_type}), value {value!r}",
            cause=error.cause or error.what,
            remedy="give the key as the source prints it",
        ) from error


def _check_whole(column: Column, value: Any) -> None:
    """Compared with a number that its column can't hold, the server finds no row and says nothing."""
    bits = _BITS.get(base_type(column))
    if bits is None:
        return
    unsigned = "unsigned" in column.source_type.lower()
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not re.fullmatch(r"-?\d+", value) or not least <= int(value) <= most:
        raise SourceError("no such number", cause=f"the column holds whole numbers from {least} to {most}")


def _check_predicate(connection: Any, table: TableSchema, predicate: str) -> None:
    """Checks the predicate by the grammar, then on the server: both forms must be right. Within CASE no closing
    parenthesis ends the expression, within WHERE no aggregate is allowed. So what passes is one expression over one
    row. (The connection takes no second statement.)
    """
    grammatical(predicate, table, "`")
    name = quote_table(table.id)
    for statement in (
        f"SELECT CASE WHEN {predicate}\nTHEN 1 ELSE 0 END FROM {name} LIMIT 0",
        f"SELECT 1 FROM {name} WHERE ({predicate}\n) LIMIT 0",
    ):
        try:
            query(connection, statement)
        except (pymysql.err.ProgrammingError, pymysql.err.OperationalError, pymysql.err.DataError) as error:
            if not _about_the_statement(error):
                raise
            raise RequestError(
                f"the predicate can't be asked of {table.id}",
                where=f"--where {predicate!r}",
                cause=str(error.args[1]),
                remedy="give one SQL expression over the table's columns that is true or false for a row",
            ) from error


def _about_the_statement(error: pymysql.err.MySQLError) -> bool:
    """Server errors (1000 to 1999, and from 3000 on), not those of the connection (2000 to 2999)."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 2000
    return len(error.args) > 1 and not 2000 <= code < 3000
