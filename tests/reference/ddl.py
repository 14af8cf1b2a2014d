"""The control tables as the statements that make them, for each kind of server."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from alembic.migration import MigrationContext
from alembic.operations import Operations

from migrator.adapters.targets.mysql.key_maps import key_maps as mysql_key_maps
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.postgres.key_maps import key_maps as postgres_key_maps
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.model.server import Server

_TARGET = ("target_0001_ledger", "target_0002_history")
_SOURCE = ("source_0001_watermark",)
_SERVERS = {"PostgreSQL": "postgresql", "MySQL and MariaDB": "mysql"}


def target_lines() -> Iterator[str]:
    """Ledger, history and key maps on each kind of target."""
    maps = {
        "postgresql": postgres_key_maps(
            PostgresTarget(Server("postgresql", "h", 5432, "d", "u", schema="public"), "m")
        ),
        "mysql": mysql_key_maps(MysqlTarget(Server("mysql", "h", 3306, "d", "u"), "m")),
    }
    for server, dialect in _SERVERS.items():
        yield from (f"### Target on {server}", "", "```sql")
        for revision in _TARGET:
            yield from statements(_revision(revision), dialect)
        yield from (f"{' '.join(one.split())};" for one in maps[dialect]._tables.make)
        yield from ("```", "")


def source_lines() -> Iterator[str]:
    """The watermark's table on each kind of source."""
    for server, dialect in _SERVERS.items():
        yield from (f"### Source on {server}", "", "```sql")
        for revision in _SOURCE:
            yield from statements(_revision(revision), dialect)
        yield from ("```", "")


def statements(revision: ModuleType, dialect: str) -> list[str]:
    """What a revision of the control tables sends to a server, line by line."""
    sent = io.StringIO()
    context = MigrationContext.configure(
        dialect_name=dialect, opts={"as_sql": True, "output_buffer": sent, "literal_binds": True}
    )
    with Operations.context(context):
        revision.upgrade()
    return [line.replace("\t", "    ").rstrip() for line in sent.getvalue().splitlines() if line.strip()]


def _revision(name: str) -> ModuleType:
    return import_module(f"migrator.schema.versions.{name}")
