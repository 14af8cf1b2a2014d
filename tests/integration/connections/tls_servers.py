"""Servers that answer over TLS only, and the certificates to meet them with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator.embedded.process import make_server_directory, scratch_directory, unprivileged_user
from tests.integration.connections.tls_terminator import TlsTerminator
from tests.servers import Database, embedded_mariadb, embedded_mysql, embedded_postgres

CERTIFICATES = Path(__file__).parents[2] / "certificates"
RIGHT_CA, WRONG_CA = CERTIFICATES / "ca.pem", CERTIFICATES / "other_ca.pem"
# The certificate is for the address 127.0.0.1; localhost is the same server under a name that it doesn't have.
RIGHT_HOST, WRONG_HOST = "127.0.0.1", "localhost"


def _certificate(folder: Path, user: str | None) -> str:
    """A copy of the server's certificate and key as only its user may read it."""
    copy = make_server_directory(folder / "tls", user) / "server.pem"
    shutil.copy(CERTIFICATES / "server.pem", copy)
    copy.chmod(0o600)
    if user is not None:
        shutil.chown(copy, user)
    return str(copy)


@contextmanager
def encrypted_postgres() -> Iterator[Database]:
    """A PostgreSQL that admits nobody without TLS.

    The wheel's server is built without TLS, so a terminator in front of it speaks that part of the protocol.
    """
    with scratch_directory("migrator-tls-") as folder, embedded_postgres(folder / "pg") as server:
        server.create_database("safe")
        with TlsTerminator(CERTIFICATES / "server.pem", (server.host, server.port)) as front:
            yield Database(RIGHT_HOST, front.port, "safe", server.superuser, "", "postgresql")


@contextmanager
def encrypted_binlog(kind: str) -> Iterator[Database]:
    """A MySQL or MariaDB that admits nobody without TLS."""
    with scratch_directory("migrator-tls-") as folder:
        pem = _certificate(folder, unprivileged_user("mysql") if kind == "mariadb" else unprivileged_user())
        settings = {"ssl-cert": pem, "ssl-key": pem, "require-secure-transport": "ON"}
        made = embedded_mysql if kind == "mysql" else embedded_mariadb
        with made(folder / "db", settings=settings) as server:
            server.create_database("safe")
            yield Database(server.host, server.port, "safe", server.superuser, server.password, kind)
