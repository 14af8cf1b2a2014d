"""The common part of the embedded MariaDB and MySQL: one protocol, one kind of options, one test of readiness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pymysql
import pymysql.cursors

from migrator.connections.mysql.connection import Connection
from migrator.embedded.process import Program, ServerProcess, make_server_directory
from migrator.embedded.server import EmbeddedServer


class BinlogServer(EmbeddedServer):
    """A server of the MySQL family under ``directory``; a context manager.

    Args:
        directory: gets the data directory and the log; kept when the server stops, and used again by the next
            start.
        settings: server options without the leading dashes, over the defaults; an empty value gives a bare flag.

    Attributes: ``host``, ``port`` (the same after a restart), ``superuser`` (``root``, no password).
    """

    superuser = "root"
    password = ""
    defaults: ClassVar[Mapping[str, str]]

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None):
        super().__init__(directory)
        self._settings = {**self.defaults, **(settings or {})}

    def connect(self, database: str | None = None, user: str | None = None, password: str = "") -> Connection:
        """An autocommit connection as ``user`` (by default the superuser)."""
        return Connection(
            host=self.host,
            port=self.port,
            user=user or self.superuser,
            password=password,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=5,
        )

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        self._execute(f"CREATE DATABASE {_quote(name)}")

    def drop_database(self, name: str) -> None:
        """Drop a database."""
        self._execute(f"DROP DATABASE {_quote(name)}")

    def _execute(self, statement: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def _serving(self, program: list[str], root: Path, name: str, user: str | None) -> ServerProcess:
        """The process of ``program``, which knows its data directory ``root / "data"`` already."""
        options = [f"--{key}={value}" if value else f"--{key}" for key, value in self._settings.items()]
        files = ["--socket=server.sock", f"--pid-file={root / name}.pid", own_temporary_files(root, user)]
        return ServerProcess(
            self.title,
            Program(
                [*program, *files, f"--bind-address={self.host}", f"--port={self.port}", *options],
                user=user,
                directory=root,
                log=root / f"{name}.log",
            ),
            ready=lambda: self._why_not_ready(root / "data"),
        )

    def _why_not_ready(self, data: Path) -> str:
        try:
            with self.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@datadir")
                row = cursor.fetchone()
        except pymysql.err.OperationalError as error:
            return str(error)
        if row is None or Path(row[0]).resolve() != data.resolve():
            return f"another server answers on port {self.port}"
        return ""


def own_temporary_files(root: Path, user: str | None) -> str:
    """The option that puts a server's temporary tables below ``root``.

    In a folder that servers share, one that starts takes the others' temporary tables for its own of an
    earlier life and deletes them under their queries ("Error on delete of '/tmp/#sql-temptable-...'").
    """
    return f"--tmpdir={make_server_directory(root / 'tmp', user)}"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
