"""Where the new MySQL or MariaDB database is and how it is written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import URL, Engine, create_engine, pool

from migrator.binlog.settings import TLS_MODES, tls_options
from migrator.errors import ConfigError

_MIGRATION_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")

# What a role or server may have set otherwise. sql_mode: strict, so that a value that doesn't fit is an error; a zero
# in an AUTO_INCREMENT column is a value. Isolation: after waiting for the ledger's row lock the newest row must be
# seen, and no gaps are locked. foreign_key_checks: see ``writer``. sql_notes: also what the server calls a note (text
# cut at trailing spaces) counts. autocommit off: after a deadlock the server has ended the transaction, and whatever
# were sent by mistake would begin another one that nobody commits.
_SESSION: Mapping[str, str] = {
    "sql_mode": "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION'",
    "time_zone": "'+00:00'",
    "foreign_key_checks": "0",
    "unique_checks": "1",
    "sql_notes": "1",
    "sql_warnings": "0",
    "sql_select_limit": "DEFAULT",
    "autocommit": "0",
    "completion_type": "0",
}


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
        problems = [
            (self.kind not in ("mysql", "mariadb"), "kind", self.kind, "mysql | mariadb"),
            (
                not _MIGRATION_NAME.fullmatch(self.migration),
                "migration",
                self.migration,
                "[a-z][a-z0-9_]{0,30}",
            ),
            (self.tls not in TLS_MODES, "tls", self.tls, " | ".join(TLS_MODES)),
            (not self.database, "database", self.database, "the name of a database"),
            (self.lock_wait_s < 1, "lock_wait_s", self.lock_wait_s, "at least 1"),
            (self.silence_s <= 0, "silence_s", self.silence_s, "more than 0"),
        ]
        for wrong, name, value, allowed in problems:
            if wrong:
                raise ConfigError(
                    f"target setting {name} is {value!r}", where=name, remedy=f"allowed: {allowed}"
                )

    @property
    def address(self) -> str:
        """The server in words, for messages."""
        return f"{self.user}@{self.host}:{self.port}/{self.database}"

    def lock_name(self, epoch: int) -> str:
        """Name of the server's lock that the session of a leader holds; a newer one finds older sessions by it."""
        return f"migrator {self.migration} {hashlib.sha256(self.database.encode()).hexdigest()[:12]} {epoch}"

    def session(self) -> str:
        """The statement that every session begins with."""
        waits = {"innodb_lock_wait_timeout": self.lock_wait_s, "lock_wait_timeout": self.lock_wait_s}
        settings = {**_SESSION, **{name: str(value) for name, value in waits.items()}}
        return "SET SESSION " + ", ".join(f"{name} = {value}" for name, value in settings.items())

    def options(self) -> dict[str, Any]:
        """PyMySQL's options, password included: never print them."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password.encode() if self.password else b"",
            "database": self.database,
            "charset": "utf8mb4",
            "connect_timeout": self.connect_timeout_s,
            "program_name": f"migrator {self.migration} target",
            **tls_options(self.tls, self.tls_ca or None),
        }

    def engine(self) -> Engine:
        """An SQLAlchemy engine for Alembic that keeps no connection open."""
        options = {
            name: value
            for name, value in self.options().items()
            if name not in ("host", "port", "user", "password", "database")
        }
        return create_engine(self.url(), poolclass=pool.NullPool, connect_args=options)

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
