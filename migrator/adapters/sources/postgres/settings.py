"""The place of the old PostgreSQL database and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.errors import ConfigError, SchemaError
from migrator.model.server import TLS_MODES, Server
from migrator.model.table import TableId

WITNESS = "witness"
WATERMARK = "watermark"
MESSAGE = "message"
PLACEMENTS = (WITNESS, WATERMARK, MESSAGE)
SERVER_LOG = "server"
CHANGE_TABLES = "change_tables"
CONTROL_SCHEMA = "migrator"
WATERMARK_TABLE = "watermark"

_MIGRATION_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


@dataclass(frozen=True, slots=True)
class ColumnChoices:
    """Choices about the columns of a table.

    Attributes:
        as_text: those that travel as the text of their values, since their logical type can't hold all of them.
        generated: whether stored generated columns are read where the log has them (18 and later).
    """

    as_text: frozenset[str] = frozenset()
    generated: bool = False


Choices = Callable[[TableId], ColumnChoices]


def chosen_otherwise(table: TableId, as_text: frozenset[str], where: str) -> SchemaError:
    """The named error for columns that travelled otherwise until now: one column would have values of two types."""
    return SchemaError(
        f"columns of {table} travel as text that didn't until now, or no longer do",
        where=where,
        cause=f"source.text_columns says {', '.join(sorted(as_text)) or 'none'} of {table.name}",
        remedy="put source.text_columns back as it was, or start the migration anew (docs/how-to/start-anew.md)",
    )


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """Connection and reading options of a PostgreSQL source.

    Attributes:
        server: the primary server, or a standby (16 and later), and the login.
        migration: name of the migration; slot and publication are called ``migrator_<migration>``.
        placement: ``witness`` (nothing is written), ``watermark`` (DBLog's watermark row), or ``message`` (the same
            marks as logical messages, without a table).
        failover: whether the slot is made so that standbys may take it over (17 and later; docs/how-to/standby.md).
        streaming: whether the server sends large transactions while they run (see ``reassembly``).
        spill_folder: where they are collected meanwhile; None for the system's temporary folder.
        part_rows: most row changes of one transaction part.
        part_bytes: most bytes of log messages held for one transaction part.
        connect_timeout_s: for every new connection.
        log: ``server`` (its own log) or ``change_tables`` (see
            ``migrator.adapters.sources.postgres.change_tables``).
        poll_s: least time between two polls of change tables.
        forget_changes: whether to delete rows of change tables that were delivered and are durable.
        text_columns: by table, the columns that travel as text (see ``ColumnChoices``).
        counterpart: name of the migration that writes into this database what was changed on the other side.
    """

    server: Server
    migration: str
    placement: str = WITNESS
    failover: bool = True
    streaming: bool = True
    spill_folder: Path | None = None
    part_rows: int = 50_000
    part_bytes: int = 64 << 20
    connect_timeout_s: int = 10
    log: str = SERVER_LOG
    poll_s: float = 0.1
    forget_changes: bool = False
    text_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    counterpart: str = ""

    def __post_init__(self) -> None:
        problems = [
            (
                not _MIGRATION_NAME.fullmatch(self.migration),
                "migration",
                self.migration,
                "[a-z][a-z0-9_]{0,30}",
            ),
            (self.server.tls not in TLS_MODES, "tls", self.server.tls, " | ".join(TLS_MODES)),
            (
                self.placement not in PLACEMENTS,
                "placement",
                self.placement,
                " | ".join(PLACEMENTS),
            ),
            (
                self.log not in (SERVER_LOG, CHANGE_TABLES),
                "log",
                self.log,
                f"{SERVER_LOG} | {CHANGE_TABLES}",
            ),
            (
                self.log == CHANGE_TABLES and self.placement != WITNESS,
                "placement",
                self.placement,
                f"{WITNESS} with log = {CHANGE_TABLES}",
            ),
            (self.part_rows < 1, "part_rows", self.part_rows, "at least 1"),
            (self.part_bytes < 1, "part_bytes", self.part_bytes, "at least 1"),
            (self.poll_s < 0, "poll_s", self.poll_s, "0 or more"),
            (self.server.silence_s <= 0, "silence_s", self.server.silence_s, "more than 0"),
        ]
        for wrong, name, value, allowed in problems:
            if wrong:
                raise ConfigError(
                    f"source setting {name} is {value!r}", where=name, remedy=f"allowed: {allowed}"
                )

    def choices(self, table: TableId) -> ColumnChoices:
        """Returns what is chosen about a table's columns. Change tables never had generated ones."""
        named = (
            self.text_columns.get(table.name, frozenset())
            if table.schema == self.server.schema
            else frozenset()
        )
        return ColumnChoices(named, self.log == SERVER_LOG)

    @property
    def slot(self) -> str:
        """Name of the replication slot and of the publication, and prefix of our logical messages."""
        return f"migrator_{self.migration}"
