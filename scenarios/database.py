"""The address of a database, and one way to talk to it on any engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import quote

import psycopg
import pymysql

from migrator.connections.mysql.connection import Connection as MySQLConnection
from migrator.errors import ConnectionFailed

_CONNECT_TIMEOUT_S = 5
_RECURSIONS = 2**32 - 1
"""MySQL makes rows of numbers by recursion, a thousand of them if not told otherwise."""


class Cursor(Protocol):
    """The common part of psycopg's and PyMySQL's cursors (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """Rows changed or found by the last statement."""

    def execute(self, statement: Any, parameters: Any = ..., /) -> Any:
        """Run one statement with ``%s`` parameters."""

    def fetchall(self) -> Any:
        """All rows of the last SELECT."""

    def close(self) -> None:
        """Give the cursor back."""


class Connection(Protocol):
    """The common part of psycopg's and PyMySQL's connections (PEP 249)."""

    def cursor(self) -> Cursor:
        """A new cursor."""

    def commit(self) -> None:
        """End the transaction and keep its changes."""

    def rollback(self) -> None:
        """End the transaction and drop its changes."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""


@dataclass(frozen=True, slots=True)
class Database:
    """The address of a database, on any engine, with the login.

    Attributes:
        kind: ``postgresql``, ``mariadb`` or ``mysql``.
        schema: PostgreSQL only; a MariaDB or MySQL database is its own schema.
        password: never printed.
    """

    kind: Literal["postgresql", "mariadb", "mysql"]
    host: str
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    schema: str = "public"

    def url(self) -> str:
        """Returns the address for people to paste, without password and schema; the scheme is the kind, as ``migrator
        init`` takes it."""
        return f"{self.kind}://{quote(self.user)}@{self.host}:{self.port}/{quote(self.database)}"

    def connect(self, *, autocommit: bool = False, local_files: bool = False) -> Connection:
        """A new connection that takes double-quoted identifiers and works in UTC.

        Args:
            autocommit: whether each statement is a transaction of its own.
            local_files: let LOAD DATA LOCAL of MariaDB and MySQL read files of this machine.

        Raises:
            ConnectionFailed: no server there, or it refuses the login.
        """
        more = f", cte_max_recursion_depth = {_RECURSIONS}" if self.kind == "mysql" else ""
        try:
            if self.kind == "postgresql":
                return self.postgres(autocommit=autocommit)
            connection: Connection = MySQLConnection(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password,
                database=self.database,
                charset="utf8mb4",
                autocommit=autocommit,
                local_infile=local_files,
                connect_timeout=_CONNECT_TIMEOUT_S,
                init_command=f"SET SESSION sql_mode = 'TRADITIONAL,ANSI_QUOTES', time_zone = '+00:00'{more}",
            )
            return connection
        except (psycopg.OperationalError, pymysql.err.OperationalError) as error:
            raise ConnectionFailed(
                f"can't connect to {self.kind}",
                where=f"{self.host}:{self.port}/{self.database} as {self.user}",
                cause=str(error).strip(),
                remedy="check that the server runs and that this user may log in",
                retryable=True,
            ) from error

    def postgres(self, *, autocommit: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A psycopg connection; only for ``kind`` postgresql. Raises psycopg.OperationalError."""
        return psycopg.connect(
            host=self.host,
            port=self.port,
            dbname=self.database,
            user=self.user,
            password=self.password or None,
            autocommit=autocommit,
            connect_timeout=_CONNECT_TIMEOUT_S,
            options=f"-c search_path={self.schema} -c timezone=UTC",
        )
