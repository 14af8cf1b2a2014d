"""Settings of the new PostgreSQL database: where it is and how it is written."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg.conninfo import make_conninfo
from sqlalchemy import URL

from migrator.adapters.targets.shared.settings import Problem, check_settings
from migrator.connections.postgres.session import PINS, Login, parts, seconds
from migrator.model.server import Server

# Beside what every session is pinned to. synchronous_commit: segments are deleted once the ledger holds them.
_PINS = {**PINS, "synchronous_commit": "on"}
# temp_buffers and work_mem: staging tables and the joins with them, one session. jit: compiling costs more
# than small batches do. Keepalives: a cut process must not hold the ledger's lock for ever.
_MORE = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "temp_buffers": "64MB",
    "work_mem": "64MB",
    "jit": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """Connection of a PostgreSQL target.

    Attributes:
        server: the primary server, the schema of the target tables, and the login.
        migration: name of the migration, key of its row in the ledger.
        connect_timeout_s: for every new connection.
        lock_wait_s: how long a statement may wait for a lock before it is given up (retryable).
        reason: why the command was given, for the history.
        changes_only: whether the tables have their rows already, as on the way back.
    """

    server: Server
    migration: str
    connect_timeout_s: int = 10
    lock_wait_s: int = 30
    reason: str = ""
    changes_only: bool = False

    def __post_init__(self) -> None:
        check_settings(
            self,
            [
                Problem(not self.server.schema, "schema", "", "the name of a schema, usually public"),
            ],
        )

    @property
    def application_name(self) -> str:
        """Name of the sessions that write; a new leader ends older ones by it."""
        return f"migrator {self.migration} target"

    def conninfo(self) -> str:
        """libpq connection string of a writing session, password included: never print it."""
        return make_conninfo(
            host=self.server.host,
            port=self.server.port,
            dbname=self.server.database,
            user=self.server.user,
            password=self.server.password,
            connect_timeout=self.connect_timeout_s,
            application_name=self.application_name,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=60_000,
            **parts(self.pins(), _MORE),
            **self._tls(),
        )

    def pins(self) -> dict[str, str]:
        """Returns a writing session's settings."""
        return {**_PINS, "lock_timeout": seconds(self.lock_wait_s)}

    def login(self) -> Login:
        """Returns whose session it is: server, user and database."""
        return Login(self.server.address, self.server.user, self.server.database)

    def url(self) -> URL:
        """SQLAlchemy URL for Alembic and verification, with the password inside (hidden when printed)."""
        return URL.create(
            "postgresql+psycopg",
            username=self.server.user,
            password=self.server.password,
            host=self.server.host,
            port=self.server.port,
            database=self.server.database,
            query={"connect_timeout": str(self.connect_timeout_s), **self._tls()},
        )

    def _tls(self) -> dict[str, str]:
        options = {"sslmode": self.server.tls, "sslrootcert": self.server.tls_ca}
        return {name: value for name, value in options.items() if value}
