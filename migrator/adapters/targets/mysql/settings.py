"""Settings of the new MySQL or MariaDB database: where it is and how it is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import URL, Engine, create_engine, pool

from migrator.adapters.targets.shared.settings import Problem, check_settings
from migrator.connections.mysql.connection import Connection
from migrator.connections.mysql.session import ENGINE_OPTIONS, REVISES, WRITES, Settings, pin
from migrator.connections.mysql.settings import TLS_MODES, tls_options


@dataclass(frozen=True, slots=True)
class MysqlTarget:
    """Connection of a MySQL or MariaDB target. Raises ``ConfigError`` for a value that can't be.

    Attributes:
        kind: ``mysql`` or ``mariadb``.
        host, port, database, user, password: of the primary server; the password is never printed.
        migration: name of the migration, key of its row in the ledger.
        tls, tls_ca: one of ``TLS_MODES``, named as libpq names them; file with the authorities to trust.
        connect_timeout_s: for every new connection.
        lock_wait_s: how long a statement may wait for a lock before it is given up (retryable).
        silence_s: how long a statement may go unanswered before we ask, over another connection, whether the server
            still works on it; after as long again without a sign of it the connection counts as dead.
        reason: why the command was given, for the history.
        local_files: whether LOAD DATA LOCAL may be used where the server allows it.
    """

    kind: str
    host: str
    port: int
    database: str
    user: str
    migration: str
    password: str | None = field(default=None, repr=False)
    tls: str = "prefer"
    tls_ca: str = ""
    connect_timeout_s: int = 10
    lock_wait_s: int = 30
    silence_s: float = 20.0
    reason: str = ""
    local_files: bool = True

    def __post_init__(self) -> None:
        """Refuses values that no server could accept."""
        check_settings(
            self,
            [
                Problem(self.kind not in ("mysql", "mariadb"), "kind", self.kind, "mysql | mariadb"),
                Problem(self.tls not in TLS_MODES, "tls", self.tls, " | ".join(TLS_MODES)),
                Problem(not self.database, "database", self.database, "the name of a database"),
            ],
        )

    @property
    def address(self) -> str:
        """The server in words, for messages."""
        return f"{self.user}@{self.host}:{self.port}/{self.database}"

    def lock_name(self, epoch: int) -> str:
        """Name of the server's lock that the session of a leader holds; a newer one finds older sessions by it."""
        return f"migrator {self.migration} {hashlib.sha256(self.database.encode()).hexdigest()[:12]} {epoch}"

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
            pin(connection, purpose, self.address)
        except BaseException:
            connection.close()
            raise
        return connection

    def options(self) -> dict[str, Any]:
        """PyMySQL's options, password included: never print them."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password.encode() if self.password else b"",
            "database": self.database,
            "charset": "utf8mb4",
            "autocommit": None,
            "connect_timeout": self.connect_timeout_s,
            "program_name": f"migrator {self.migration} target",
            **tls_options(self.tls, self.tls_ca or None),
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
            f"{self.kind}+pymysql",
            username=self.user,
            password=self.password,
            host=self.host,
            port=self.port,
            database=self.database,
        )
