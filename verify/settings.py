"""The settings with which the judge reaches the two databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("postgresql", "mariadb", "mysql")
TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""libpq's names for how much of TLS is asked for; the same words are used for the others."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One side of the comparison. The login needs nothing but reading rights.

    Attributes:
        kind: one of ``KINDS``.
        host: name or address.
        port: TCP port.
        database: database name.
        user: login.
        password: never shown, not even by ``repr``.
        schema: PostgreSQL schema of the tables; on the others the database is the schema.
        tls: one of ``TLS_MODES``.
        tls_ca: file with the authorities to trust, for the verifying modes.
        text_columns: by table, the columns of a PostgreSQL source that travel as text.
        change_tables: whether a PostgreSQL source is captured by triggers instead of from its log.
    """

    kind: str
    host: str
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    schema: str = "public"
    tls: str = "prefer"
    tls_ca: str = ""
    change_tables: bool = False
    text_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.tls not in TLS_MODES:
            raise ValueError(f"tls must be one of {', '.join(TLS_MODES)}, not {self.tls!r}")

    def table_schema(self) -> str:
        """The schema part of a table's identity."""
        return self.schema if self.kind == "postgresql" else self.database

    def where(self) -> str:
        """Server and database for messages, without any secret."""
        return f"{self.kind}://{self.user}@{self.host}:{self.port}/{self.database}"
