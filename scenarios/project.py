"""Two throw-away databases and a copy of a project between them: what demo, benchmark and tests start from."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import MigratorError
from scenarios.database import Database


def servers(
    stack: ExitStack,
    source: str,
    target: str = "postgresql",
    buffers_mib: int | None = None,
    postgres: int = 18,
) -> tuple[Database, Database]:
    """Two separate servers, each with one empty database, stopped and removed when the stack is closed.

    ``buffers_mib``: how much each keeps of its tables in memory, in MiB; None leaves it to what a server has by
    default. ``postgres``: major version of every PostgreSQL.

    Raises ``MigratorError`` for a server that can't be had here (``PackagesUnavailable``: Debian's packages).
    """
    folder = stack.enter_context(scratch_directory("migrator-demo-"))
    old = _server_of(stack, folder, source, "old", buffers_mib, postgres)
    return old, _server_of(stack, folder, target, "new", buffers_mib, postgres)


def _server_of(
    stack: ExitStack, folder: Path, kind: str, name: str, buffers_mib: int | None, postgres: int
) -> Database:
    """A server of one kind, with an empty database called ``name``."""
    innodb = {} if buffers_mib is None else {"innodb-buffer-pool-size": f"{buffers_mib}M"}
    if kind == "mariadb":
        maria = stack.enter_context(EmbeddedMariaDB(folder / name, settings=innodb))
        maria.create_database(name)
        return Database("mariadb", maria.host, maria.port, name, maria.superuser)
    if kind == "mysql":  # it takes LOAD DATA LOCAL only if told so
        mysql = stack.enter_context(EmbeddedMySQL(folder / name, settings={"local-infile": "ON", **innodb}))
        mysql.create_database(name)
        return Database("mysql", mysql.host, mysql.port, name, mysql.superuser)
    shared = {} if buffers_mib is None else {"shared_buffers": f"{buffers_mib}MB"}
    server = stack.enter_context(EmbeddedPostgres(folder / name, settings=shared, version=postgres))
    server.create_database(name)
    return Database("postgresql", server.host, server.port, name, server.superuser)


def make_project(
    folder: Path,
    old: Database,
    new: Database,
    origin: Path,
    name: str,
    more: Sequence[str] = (),
) -> Path:
    """A copy of a project in ``folder`` that points at these servers; returns its migration.toml."""
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "migration.toml").exists():
            raise MigratorError(f"{folder} is no demo's folder", remedy="choose an empty one with --folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    shutil.copy(origin / "mapping.py", folder)
    if (origin / "queries.yaml").exists():
        shutil.copy(origin / "queries.yaml", folder)
    shutil.copytree(origin / "alembic", folder / "alembic", ignore=shutil.ignore_patterns("__pycache__"))
    config = folder / "migration.toml"
    config.write_text(
        "\n".join(
            [
                "[migration]",
                f'name = "{name}"',
                "",
                *_server("source", old),
                "",
                *_server("target", new),
                "",
                *more,
                "",
            ]
        )
    )
    return config


def _server(section: str, database: Database) -> list[str]:
    return [
        f"[{section}]",
        f'kind = "{database.kind}"',
        f'host = "{database.host}"',
        f"port = {database.port}",
        f'database = "{database.database}"',
        f'user = "{database.user}"',
    ]
