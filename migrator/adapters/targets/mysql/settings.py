"""Settings of the new MySQL or MariaDB database: where it is and how it is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Engine, create_engine, pool

from migrator.adapters.targets.shared.settings import Problem, check_settings
from migrator.connections.mysql.connection import Connection
from migrator.connections.mysql.session import ENGINE_OPTIONS, REVISES, WRITES, Settings, pin
from migrator.connections.mysql.settings import tls_options
from migrator.model.server import Server

_KINDS = ("mysql", "mariadb")


@dataclass(frozen=True, slots=True)
class MysqlTarget:
    """Connection of a MySQL or MariaDB target. Raises ``ConfigError`` for a value that can't be.

    Attributes:
        server: the primary server, of ``mysql`` or ``mariadb``, and the login.
        migration: name of the migration, key of its row in the ledger.
        connect_timeout_s: for every new connection.
        lock_wait_s: how long a statement may wait for a lock before it is given up (retryable).
        reason: why the command was given, for the history.
        changes_only: whether the tables have their rows already, as on the way back.
        local_files: whether LOAD DATA LOCAL may be used where the server allows it.
    """

    server: Server
    migration: str
    connect_timeout_s: int = 10
    lock_wait_s: int = 30
    reason: str = ""
    changes_only: bool = False
    local_files: bool = True

    def __post_init__(self) -> None:
        """Refuses values that no server could accept."""
        check_settings(
            self,
            [
                Problem(self.server.kind not in _KINDS, "kind", self.server.kind, " | ".join(_KINDS)),
                Problem(not self.server.database, "database", "", "the name of a database"),
            ],
        )

    def lock_name(self, epoch: int) -> str:
        """Name of the server's lock that the session of a leader holds; a newer one finds older sessions by it."""
        return f"migrator {self.migration} {hashlib.sha256(self.server.database.encode()).hexdigest()[:12]} {epoch}"

    def session(self) -> Settings:
        """Returns the server's settings that every writing session needs."""
        return {
            **WRITES,
            "innodb_lock_wait_timeout": str(self.lock_wait_s),
            "lock_wait_timeout": str(self.lock_wait_s),
        }

    def connected(
        self, purpose: Settings, connection_class: type[Connection] = Connection, **options: Any
    ) -> Any:
        """A connection whose session is as ``purpose`` says. Raises PyMySQL's errors, and ``ConnectionFailed``."""
        connection = connection_class(**self.options(), **options)
        try:
            pin(connection, purpose, self.server.address)
        except BaseException:
            connection.close()
            raise
        return connection

    def options(self) -> dict[str, Any]:
        """PyMySQL's options, password included: never print them."""
        return {
            "host": self.server.host,
            "port": self.server.port,
            "user": self.server.user,
            "password": (self.server.password or "").encode(),
            "database": self.server.database,
            "charset": "utf8mb4",
            "autocommit": None,
            "connect_timeout": self.connect_timeout_s,
            "program_name": f"migrator {self.migration} target",
            **tls_options(self.server.tls, self.server.tls_ca or None),
        }

    def engine(self) -> Engine:
        """An SQLAlchemy engine for Alembic that keeps no connection open."""
        return create_engine(
            self.url(),
            poolclass=pool.NullPool,
            creator=lambda: self.connected(REVISES, **ENGINE_OPTIONS),
        )

    def url(self) -> URL:
        """SQLAlchemy URL, with the password inside (hidden when printed); TLS is the engine's."""
        return URL.create(
            f"{self.server.kind}+pymysql",
            username=self.server.user,
            password=self.server.password,
            host=self.server.host,
            port=self.server.port,
            database=self.server.database,
        )
