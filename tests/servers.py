"""Where tests get real database servers from: embedded ones, or Docker containers.

``MIGRATOR_TEST_SERVERS`` chooses: ``embedded`` (the default) or ``docker`` (testcontainers; a Docker engine
must answer). A server that can't be started fails the test that asked for it. One thing is skipped, with its
reason: MySQL where its packages can't be had at all, because Debian has them in a suite that moves.

``MIGRATOR_TEST_POSTGRES`` chooses PostgreSQL's major version, 18 if it isn't set; 15 to 18 are embedded. What an
older one doesn't have is skipped by name (``needs_postgres``). ``MIGRATOR_TEST_MARIADB`` chooses MariaDB's version:
11.8 is embedded, and so is what the package manager has if it isn't set. ``MIGRATOR_TEST_MYSQL`` chooses the
version of MySQL: 8.0 is embedded, and so is what Debian has if it isn't set; with Docker any tag (8.4).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pymysql
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from migrator.connections.mysql.connection import Connection
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL, mysql_packages
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.model import server as model

POSTGRES_VERSION = int(os.environ.get("MIGRATOR_TEST_POSTGRES", "18"))
POSTGRES_IMAGE = "postgres:18.1" if POSTGRES_VERSION == 18 else f"postgres:{POSTGRES_VERSION}"
MARIADB_VERSION = os.environ.get("MIGRATOR_TEST_MARIADB")
MARIADB_IMAGE = f"mariadb:{MARIADB_VERSION or '10.11.15'}"
MYSQL_VERSION = os.environ.get("MIGRATOR_TEST_MYSQL")
MYSQL_IMAGE = f"mysql:{MYSQL_VERSION or '9.7'}"
MARIADB_OPTIONS = (
    "--server-id=10 --log-bin=binlog --binlog-format=ROW --binlog-row-image=FULL"
    " --binlog-row-metadata=FULL --character-set-server=utf8mb4 --default-time-zone=+00:00"
)
MYSQL_OPTIONS = (
    "--server-id=97 --log-bin=binlog --binlog-row-image=FULL --binlog-row-metadata=FULL --gtid-mode=ON"
    " --enforce-gtid-consistency=ON --default-time-zone=+00:00"
)

_NO_SUCH_THREAD = 1094  # the session ended by itself in the meantime


@dataclass(frozen=True, slots=True)
class Database:
    """One database of one server, and how to log in; ``kind`` is ``postgresql``, ``mariadb`` or ``mysql``."""

    host: str
    port: int
    database: str
    user: str
    password: str
    kind: str

    @property
    def dsn(self) -> str:
        """A libpq connection string (PostgreSQL only)."""
        return make_conninfo(
            host=self.host,
            port=self.port,
            dbname=self.database,
            user=self.user,
            password=self.password or None,
        )

    def connect(self, **options: Any) -> Any:
        """An autocommit connection: psycopg's or PyMySQL's, after the kind."""
        if self.kind == "postgresql":
            return psycopg.connect(self.dsn, **{"autocommit": True, **options})
        login = {"user": self.user, "password": self.password, "database": self.database}
        server = {"host": self.host, "port": self.port, "charset": "utf8mb4"}
        return Connection(**{**login, **server, "autocommit": True, **options})

    def execute(self, *statements: str) -> None:
        """Run statements one by one, each in a transaction of its own."""
        connection = self.connect()
        try:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
        finally:
            connection.close()

    def query(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()


def server_of(database: Database, /, **changes: Any) -> model.Server:
    """The database as the tool takes it, with some fields otherwise; on PostgreSQL its schema ``public``."""
    given: dict[str, Any] = {
        "kind": database.kind,
        "host": database.host,
        "port": database.port,
        "database": database.database,
        "user": database.user,
        "password": database.password or None,
        "schema": "public" if database.kind == "postgresql" else "",
    }
    return model.Server(**{**given, **changes})


def server_and_rest(database: Database, changes: Mapping[str, Any]) -> tuple[model.Server, dict[str, Any]]:
    """``server_of`` with those of the changes that are fields of a server, and the others."""
    ours = {field.name for field in fields(model.Server)}
    server = server_of(database, **{name: value for name, value in changes.items() if name in ours})
    return server, {name: value for name, value in changes.items() if name not in ours}


class Server(Protocol):
    """A running server of which tests take databases."""

    @property
    def version(self) -> str:
        """The server's own version string."""

    def create(self, name: str) -> Database:
        """Create an empty database."""

    def drop(self, database: Database) -> None:
        """Drop it, with sessions and replication slots."""


@contextmanager
def fresh_database(server: Server, prefix: str) -> Iterator[Database]:
    """An empty database with a unique name, dropped afterwards."""
    database = server.create(f"{prefix}_{uuid.uuid4().hex[:12]}")
    try:
        yield database
    finally:
        server.drop(database)


class PostgresServer:
    """A PostgreSQL server, wherever it runs: ``embedded`` is None if it is a container."""

    def __init__(self, database: Database, embedded: EmbeddedPostgres | None):
        self.admin = database
        self.embedded = embedded

    @property
    def version(self) -> str:
        """Such as "18.4"."""
        return str(self.admin.query("SHOW server_version")[0][0])

    def create(self, name: str) -> Database:
        """Create an empty database owned by the superuser."""
        with self.admin.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return _of(self.admin, name)

    def drop(self, database: Database) -> None:
        """Cut its sessions, drop its replication slots, then the database."""
        name = sql.Identifier(database.database)
        with self.admin.connect() as connection:
            connection.execute(sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false").format(name))
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s",
                [database.database],
            )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE database = %s AND NOT temporary",
                [database.database],
            )
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


class MariaDBServer:
    """A MariaDB or MySQL server, wherever it runs: ``embedded`` is None if it is a container."""

    def __init__(self, database: Database, embedded: EmbeddedMariaDB | EmbeddedMySQL | None):
        self.admin = database
        self.embedded = embedded

    @property
    def version(self) -> str:
        """Such as "10.11.19-MariaDB-log" or "9.7.4"."""
        return str(self.admin.query("SELECT version()")[0][0])

    def create(self, name: str) -> Database:
        """Create an empty database."""
        self.admin.execute(f"CREATE DATABASE `{name}`")
        return _of(self.admin, name)

    def drop(self, database: Database) -> None:
        """Cut its sessions (an open transaction would block the drop), then drop it."""
        for (session,) in self.admin.query(
            "SELECT id FROM information_schema.processlist WHERE db = %s", [database.database]
        ):
            try:
                self.admin.execute(f"KILL {int(session)}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != _NO_SUCH_THREAD:
                    raise
        self.admin.execute(f"DROP DATABASE `{database.database}`")
        self.admin.execute(f"DROP DATABASE IF EXISTS `{database.database}_mirror`")


def _of(admin: Database, name: str) -> Database:
    return Database(admin.host, admin.port, name, admin.user, admin.password, admin.kind)


def embedded_postgres(directory: Path, **options: Any) -> EmbeddedPostgres:
    """A cluster for a test that has to disturb one, of the run's version; ``options`` as ``EmbeddedPostgres``."""
    return EmbeddedPostgres(directory, version=POSTGRES_VERSION, **options)


def embedded_mariadb(directory: Path, **options: Any) -> EmbeddedMariaDB:
    """A server for a test that has to disturb one, of the run's version; ``options`` as ``EmbeddedMariaDB``."""
    return EmbeddedMariaDB(directory, version=MARIADB_VERSION, **options)


def embedded_mysql(directory: Path, **options: Any) -> EmbeddedMySQL:
    """A server for a test that has to disturb one, of the run's version; ``options`` as ``EmbeddedMySQL``."""
    return EmbeddedMySQL(directory, version=MYSQL_VERSION, **options)


def unpacked_mysql() -> None:
    """MySQL's packages, or a skipped test that says why this machine can't have them."""
    try:
        mysql_packages(MYSQL_VERSION).install()
    except PackagesUnavailable as error:
        pytest.skip(str(error))


def needs_postgres(version: int, what: str) -> None:
    """Skips a test of something that this run's PostgreSQL is too old to have."""
    if version > POSTGRES_VERSION:
        pytest.skip(f"PostgreSQL {POSTGRES_VERSION} has no {what} (there since {version})")


def has_mysql(major: int, minor: int) -> bool:
    """Whether this run's MySQL is at least of this version."""
    if MYSQL_VERSION is None:
        return True
    return tuple(map(int, MYSQL_VERSION.split(".")[:2])) >= (major, minor)


class EmbeddedServers:
    """Servers started from wheels and the machine's packages, under one temporary folder."""

    def __init__(self, directory: Path, stack: ExitStack):
        self._directory = directory
        self._stack = stack

    def postgres(self, name: str) -> PostgresServer:
        """Start a PostgreSQL cluster called ``name``."""
        server = self._stack.enter_context(embedded_postgres(self._directory / name))
        admin = Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")
        return PostgresServer(admin, server)

    def mariadb(self, name: str) -> MariaDBServer:
        """Start a MariaDB server called ``name``."""
        server = self._stack.enter_context(embedded_mariadb(self._directory / name))
        admin = Database(server.host, server.port, "mysql", server.superuser, server.password, "mariadb")
        return MariaDBServer(admin, server)

    def mysql(self, name: str) -> MariaDBServer:
        """Start a MySQL server called ``name``. Raises ``PackagesUnavailable`` where there is none to be had."""
        server = self._stack.enter_context(embedded_mysql(self._directory / name))
        admin = Database(server.host, server.port, "mysql", server.superuser, server.password, "mysql")
        return MariaDBServer(admin, server)


class DockerServers:
    """Servers as Docker containers, through testcontainers."""

    def __init__(self, stack: ExitStack):
        self._stack = stack

    def postgres(self, name: str) -> PostgresServer:
        """Start a PostgreSQL container; ``name`` is not used."""
        from testcontainers.community.postgres import PostgresContainer

        container = PostgresContainer(POSTGRES_IMAGE, username="postgres", password="test", dbname="postgres")
        container.with_command(
            "postgres -c wal_level=logical -c max_wal_senders=20 -c max_replication_slots=20 -c timezone=UTC"
        )
        server = self._stack.enter_context(container)
        host, port = server.get_container_host_ip(), int(server.get_exposed_port(5432))
        return PostgresServer(Database(host, port, "postgres", "postgres", "test", "postgresql"), None)

    def mariadb(self, name: str) -> MariaDBServer:
        """Start a MariaDB container; ``name`` is not used."""
        from testcontainers.community.mysql import MySqlContainer

        container = MySqlContainer(MARIADB_IMAGE, username="root", root_password="test", password="test")
        container.with_command(MARIADB_OPTIONS)
        server = self._stack.enter_context(container)
        host, port = server.get_container_host_ip(), int(server.get_exposed_port(3306))
        return MariaDBServer(Database(host, port, "mysql", "root", "test", "mariadb"), None)

    def mysql(self, name: str) -> MariaDBServer:
        """Start a MySQL container; ``name`` is not used."""
        from testcontainers.community.mysql import MySqlContainer

        container = MySqlContainer(MYSQL_IMAGE, username="root", root_password="test", password="test")
        container.with_command(MYSQL_OPTIONS)
        server = self._stack.enter_context(container)
        host, port = server.get_container_host_ip(), int(server.get_exposed_port(3306))
        return MariaDBServer(Database(host, port, "mysql", "root", "test", "mysql"), None)


def mysql_server(servers: EmbeddedServers | DockerServers, name: str) -> MariaDBServer:
    """A MySQL server, or a skipped test that says why this machine can't have one.

    Only what can't be had is skipped: a server that is there and does not start fails the test.
    """
    try:
        return servers.mysql(name)
    except PackagesUnavailable as error:
        pytest.skip(str(error))


@contextmanager
def provider() -> Iterator[EmbeddedServers | DockerServers]:
    """The servers that ``MIGRATOR_TEST_SERVERS`` asks for; all of them stop at the end."""
    choice = os.environ.get("MIGRATOR_TEST_SERVERS", "embedded")
    with ExitStack() as stack:
        if choice == "embedded":
            yield EmbeddedServers(stack.enter_context(scratch_directory("migrator-test-")), stack)
        elif choice == "docker":
            docker = import_module("docker")  # a folder here has its name, and would be taken for it by mypy
            docker.from_env().ping()  # raises with the engine's address if no engine answers
            yield DockerServers(stack)
        else:
            raise ValueError(f"MIGRATOR_TEST_SERVERS is {choice!r}; use 'embedded' or 'docker'")
