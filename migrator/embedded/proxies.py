"""PgBouncer and HAProxy from Debian's packages (``migrator.embedded.debian``), for trials of hooks."""

from __future__ import annotations

import socket
from pathlib import Path

from migrator.embedded.debian import DebianServer, linked
from migrator.embedded.process import (
    Program,
    ServerProcess,
    make_server_directory,
    unprivileged_user,
)
from migrator.embedded.server import EmbeddedServer

_SUITES = ("trixie",)  # bookworm's PgBouncer, 1.18, knows no prepared statements
PGBOUNCER = DebianServer("PgBouncer", "pgbouncer", "pgbouncer", _SUITES, "usr/sbin/pgbouncer")
HAPROXY = DebianServer("HAProxy", "haproxy", "haproxy", _SUITES, "usr/sbin/haproxy")
SOCAT = DebianServer("socat", "socat", "socat", _SUITES, "usr/bin/socat")


class EmbeddedPgBouncer(EmbeddedServer):
    """A PgBouncer under ``directory`` in transaction pooling, with prepared statements; a context manager.

    Args:
        directory: gets its configuration, its log, and ``entries``, the folder of its databases.
        entries: by database of the pooler, the words behind its name.
        pool: server connections of each.

    Raises ``PackagesUnavailable`` if it can't be had here, MigratorError if it doesn't start.
    """

    title = "the embedded PgBouncer"

    def __init__(self, directory: Path, entries: dict[str, str], pool: int = 20):
        super().__init__(directory)
        self._entries, self._pool = entries, pool
        self._program = PGBOUNCER.install()

    @property
    def console(self) -> str:
        """Connection string of its console."""
        return f"host={self.host} port={self.port} user=admin dbname=pgbouncer"

    @property
    def entries(self) -> Path:
        """Folder of its databases."""
        return self._directory.absolute() / "entries"

    def _create(self) -> ServerProcess:
        user = unprivileged_user("nobody")
        root = make_server_directory(self._directory, user)
        folder = make_server_directory(self.entries, user)
        for name, words in self._entries.items():
            (folder / f"{name}.ini").write_text(f"[databases]\n{name} = {words}\n")
        settings = {
            "listen_addr": self.host,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "any",
            "admin_users": "admin",
            "pool_mode": "transaction",
            "max_prepared_statements": "100",
            "default_pool_size": str(self._pool),
            "max_client_conn": "500",
            "ignore_startup_parameters": "extra_float_digits",
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        included = [f"%include {folder / name}.ini" for name in self._entries]
        configuration = root / "pgbouncer.ini"
        configuration.write_text("\n".join(["[pgbouncer]", *lines, *included, ""]))
        command = [*linked(self._program), str(self._program / PGBOUNCER.program), str(configuration)]
        return ServerProcess(
            self.title,
            Program(command, user=user, directory=root, log=root / "pgbouncer.log"),
            ready=lambda: _why_not_ready(self.host, self.port),
        )


class EmbeddedHAProxy(EmbeddedServer):
    """An HAProxy under ``directory`` in tcp mode, one backend with servers ``old`` and ``new``; a context manager.

    Args:
        directory: gets its configuration, its runtime API's socket, and the file of its servers' states.
        sides: host and port of the old and of the new server; the new one is closed at first.

    Raises as ``EmbeddedPgBouncer`` does.
    """

    title = "the embedded HAProxy"
    backend = "shop"

    def __init__(self, directory: Path, sides: tuple[tuple[str, int], tuple[str, int]]):
        super().__init__(directory)
        self._sides = sides
        self._program = HAPROXY.install()

    @property
    def socket(self) -> Path:
        """The runtime API's socket."""
        return self._directory.absolute() / "admin.sock"

    @property
    def state(self) -> Path:
        """The file from which it knows its servers' states when it starts."""
        return self._directory.absolute() / "servers"

    def _create(self) -> ServerProcess:
        user = unprivileged_user("nobody")
        root = make_server_directory(self._directory, user)
        self.state.touch()
        (old, old_port), (new, new_port) = self._sides
        configuration = root / "haproxy.cfg"
        configuration.write_text(
            f"""global
    stats socket {self.socket} mode 600 level admin
    server-state-file {self.state}
defaults
    mode tcp
    timeout connect 5s
    timeout client 5m
    timeout server 5m
    load-server-state-from-file global
frontend {self.backend}_in
    bind {self.host}:{self.port}
    default_backend {self.backend}
backend {self.backend}
    server old {old}:{old_port}
    server new {new}:{new_port} disabled
"""
        )
        command = [
            *linked(self._program),
            str(self._program / HAPROXY.program),
            "-db",
            "-f",
            str(configuration),
        ]
        return ServerProcess(
            self.title,
            Program(command, user=user, directory=root, log=root / "haproxy.log"),
            ready=lambda: _why_not_ready(self.host, self.port),
        )


def _why_not_ready(host: str, port: int) -> str:
    """Returns why nobody listens there; empty where somebody does."""
    try:
        with socket.create_connection((host, port), timeout=3):
            return ""
    except OSError as error:
        return str(error)
