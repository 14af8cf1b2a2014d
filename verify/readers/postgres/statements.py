"""Statements that would mend a target on PostgreSQL."""

from __future__ import annotations

from psycopg import sql


class PostgresStatements:
    """See ``verify.readers.statements.Statements``. Untyped literals take the column's type."""

    begin = (
        "SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nSET TIME ZONE 'UTC';\n"
        "SET DateStyle = ISO;\nSET IntervalStyle = postgres;\nBEGIN;\n"
    )

    def __init__(self, schema: str):
        self._schema = schema

    def name(self, name: str) -> str:
        """See ``Statements.name``."""
        return sql.Identifier(name).as_string(None)

    def table(self, name: str) -> str:
        """See ``Statements.table``."""
        return sql.Identifier(self._schema, name).as_string(None)

    def literal(self, value: str | None, base: str) -> str:
        """See ``Statements.literal``."""
        if value is None:
            return "NULL"
        return sql.Literal("\\x" + value if base == "bytea" else value).as_string(None).strip()

    def same(self, column: str, literal: str) -> str:
        """See ``Statements.same``."""
        return f"{column} IS NOT DISTINCT FROM {literal}"

    def insert(self, table: str, key: str, columns: str, values: str) -> str:
        """See ``Statements.insert``."""
        head = f"INSERT INTO {self.table(table)} ({columns}) OVERRIDING SYSTEM VALUE"
        return f"{head} VALUES ({values}) ON CONFLICT DO NOTHING;"
