"""Statements that would mend a target on MySQL or MariaDB."""

from __future__ import annotations

from pymysql.converters import escape_string

from verify.readers.mysql.session import quoted


class MySQLStatements:
    """See ``verify.readers.statements.Statements``."""

    # a zero in an AUTO_INCREMENT column is a value
    begin = (
        "SET NAMES utf8mb4;\n"
        "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';\nBEGIN;\n"
    )

    def __init__(self, schema: str):
        pass

    def name(self, name: str) -> str:
        """See ``Statements.name``."""
        return quoted(name)

    def table(self, name: str) -> str:
        """See ``Statements.table``."""
        return quoted(name)

    def literal(self, value: str | None, base: str) -> str:
        """See ``Statements.literal``."""
        if value is None:
            return "NULL"
        if base == "bytea":
            return f"X'{value}'"
        if base == "bool" and value in ("true", "false"):
            return str(int(value == "true"))
        text = value.removesuffix("Z") if base == "timestamptz" else value
        return f"'{escape_string(text)}'"

    def same(self, column: str, literal: str) -> str:
        """See ``Statements.same``."""
        return f"{column} <=> {literal}"

    def insert(self, table: str, key: str, columns: str, values: str) -> str:
        """See ``Statements.insert``."""
        # not INSERT IGNORE, which would also make other values of those that don't fit
        head = f"INSERT INTO {self.table(table)} ({columns}) VALUES ({values})"
        return f"{head} ON DUPLICATE KEY UPDATE {quoted(key)} = {quoted(key)};"
