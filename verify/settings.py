"""The settings with which the judge reaches the two databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrator.config.engines import ENGINES
from migrator.model.server import TLS_MODES, Server


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One side of the comparison. The login needs nothing but reading rights.

    Attributes:
        server: the server and the login.
        text_columns: by table, the columns of a PostgreSQL source that travel as text.
        change_tables: whether a PostgreSQL source is captured by triggers instead of from its log.
    """

    server: Server
    change_tables: bool = False
    text_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.server.kind not in ENGINES:
            raise ValueError(f"kind must be one of {', '.join(ENGINES)}, not {self.server.kind!r}")
        if self.server.tls not in TLS_MODES:
            raise ValueError(f"tls must be one of {', '.join(TLS_MODES)}, not {self.server.tls!r}")
