"""A throw-away MariaDB server: the machine's own binaries, or Debian's/Ubuntu's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pymysql
import pymysql.cursors

from migrator.embedded.process import (
    LOCALHOST,
    ServerProcess,
    free_port,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)
from migrator.errors import MigratorError

if TYPE_CHECKING:
    from pymysql.connections import Connection

_DEFAULT_SETTINGS = {
    "server-id": "10",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
}
_PACKAGE = "mariadb-server"
# A package's service would start as soon as it is unpacked. policy-rc.d is Debian's switch for that
# (invoke-rc.d(8)); one that an administrator put there is left alone.
_INSTALL_SCRIPT = f"""
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\\nexit 101\\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get -q -o DPkg::Lock::Timeout=300 update
apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends {_PACKAGE}
"""


def find_mariadb() -> tuple[Path, Path] | None:
    """The paths of ``mariadbd`` and ``mariadb-install-db``, or None if one of them is missing.

    The system's sbin folders are searched too: an ordinary user's PATH often lacks them.
    """
    path = plain_environment()["PATH"]
    server = shutil.which("mariadbd", path=path)
    installer = shutil.which("mariadb-install-db", path=path)
    return (Path(server), Path(installer)) if server and installer else None


def install_mariadb() -> None:
    """Install the ``mariadb-server`` package with apt, as root or through sudo, without starting its service.

    Does nothing if the binaries are there. Raises MigratorError with the command to run when it isn't
    possible.
    """
    if find_mariadb() is not None:
        return
    remedy = f"install it yourself: sudo apt-get install --no-install-recommends {_PACKAGE}"
    if shutil.which("apt-get") is None:
        raise MigratorError(
            "MariaDB is missing and this machine has no apt-get",
            remedy="install MariaDB 10.6 or newer so that `mariadbd` is on the PATH",
        )
    command = ["sh", "-c", _INSTALL_SCRIPT]
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise MigratorError("MariaDB is missing, and installing it needs root rights", remedy=remedy)
        # Only a person at a terminal can answer sudo's question; anywhere else it would hang.
        command = ["sudo", *([] if sys.stdin.isatty() else ["-n"]), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0 or find_mariadb() is None:
        raise MigratorError(
            "MariaDB is missing and can't be installed",
            where=f"package {_PACKAGE}",
            cause="\n".join(done.stdout.splitlines()[-5:]),
            remedy=remedy,
        )


class EmbeddedMariaDB:
    """A MariaDB server under ``directory`` with a full row-based binary log; a context manager.

    Args:
        directory: gets the data directory and the log; kept when the server stops, and used again by the next
            start.
        settings: server options without the leading dashes, over the defaults; an empty value gives a bare
            flag.

    Attributes: ``host``, ``port`` (the same after a restart), ``superuser`` (``root``, no password).
    Raises MigratorError if MariaDB is missing and can't be installed, or does not start.
    """

    superuser = "root"
    password = ""
    host = LOCALHOST

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None):
        self.port = free_port()
        self._directory = directory
        self._settings = {**_DEFAULT_SETTINGS, **(settings or {})}
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the server's process exists."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._started().pid

    def start(self) -> None:
        """Create the data directory if there is none, start the server, and return once it answers."""
        if self._process is None:
            self._process = self._create()
        self._process.start()

    def stop(self) -> None:
        """Clean shutdown. Does nothing if it isn't running."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """SIGKILL the server; the next start recovers from the InnoDB log."""
        self._started().kill()

    def restart(self) -> None:
        """Stop and start again on the same port, with the same data."""
        self.stop()
        self.start()

    def connect(
        self, database: str | None = None, user: str | None = None, password: str = ""
    ) -> Connection[pymysql.cursors.Cursor]:
        """An autocommit connection as ``user`` (by default the superuser)."""
        return pymysql.connect(
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

    def _started(self) -> ServerProcess:
        if self._process is None:
            raise MigratorError("the embedded MariaDB was never started", where=str(self._directory))
        return self._process

    def _create(self) -> ServerProcess:
        install_mariadb()
        found = find_mariadb()
        if found is None:
            raise MigratorError("MariaDB was installed but can't be found")
        server, installer = found
        user = unprivileged_user("mysql")
        root = make_server_directory(self._directory, user)
        data = root / "data"
        if not (data / "mysql").exists():
            _initialise(installer, data, user)
        options = [f"--{name}={value}" if value else f"--{name}" for name, value in self._settings.items()]
        files = [f"--datadir={data}", "--socket=server.sock", f"--pid-file={root / 'mariadb.pid'}"]
        return ServerProcess(
            "the embedded MariaDB",
            [
                str(server),
                "--no-defaults",
                *files,
                f"--bind-address={self.host}",
                f"--port={self.port}",
                *options,
            ],
            user=user,
            directory=root,
            log=root / "mariadb.log",
            ready=lambda: self._why_not_ready(data),
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


def _initialise(installer: Path, data: Path, user: str | None) -> None:
    options = [
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
    ]
    command = [str(installer), "--no-defaults", *options]
    run_as(command, user, directory=data.parent, environment=plain_environment())


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
