"""The place of a database, and the login there: the one record of it."""

from __future__ import annotations

from dataclasses import dataclass, field

TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""libpq's names for how much of TLS is asked for; the same words are used for MySQL and MariaDB."""


@dataclass(frozen=True, slots=True)
class Server:
    """One database on a server, and how to log in.

    Attributes:
        kind: ``postgresql``, ``mariadb`` or ``mysql``.
        host, port: where it listens.
        database: of these tables.
        user: the login.
        password: None for a login without one. Never printed.
        schema: of the tables, on PostgreSQL; empty on the others, whose databases are their own schemas.
        tls: one of ``TLS_MODES``.
        tls_ca: file with the authorities to trust, for the verifying modes; the system's or libpq's where empty.
        silence_s: seconds that the server may be silent where it should speak before it is asked for a sign of life.
    """

    kind: str
    host: str
    port: int
    database: str
    user: str
    password: str | None = field(default=None, repr=False)
    schema: str = ""
    tls: str = "prefer"
    tls_ca: str = ""
    silence_s: float = 20.0

    @property
    def address(self) -> str:
        """Returns user, server and database, for messages."""
        return f"{self.user}@{self.host}:{self.port}/{self.database}"

    def url(self) -> str:
        """Returns the address with the kind, without the password."""
        return f"{self.kind}://{self.address}"
