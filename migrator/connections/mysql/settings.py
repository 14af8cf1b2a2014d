"""Settings by which a MySQL or MariaDB source is reached, and the one place where connections are made and their
errors get names."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql

from migrator.connections.mysql.connection import Connection
from migrator.connections.mysql.session import READS, Settings, pin
from migrator.errors import ConfigError, ConnectionFailed, MigratorError, SourceError
from migrator.model.server import TLS_MODES, Server

PLACEMENTS = ("witness", "watermark")
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 600.0
WRITE_TIMEOUT_S = 60.0

LOST_CODES = {1053, 1080, 1152, 1153, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 2014, 2055}
"""Errors, the server's and the driver's, after which a connection is of no use."""
PACKET_OVERFLOW = 1301
"""A warning: a value was too large for ``max_allowed_packet``, and is NULL or empty now."""
_CAUSES: dict[int, tuple[str, str, bool]] = {
    1040: ("too many connections", "raise max_connections, or end idle sessions", True),
    1203: ("the user has too many connections", "raise the user's MAX_USER_CONNECTIONS", True),
    3032: ("the server is in offline mode", "as an administrator: SET GLOBAL offline_mode = OFF", True),
    3118: ("the account is locked", "as an administrator: ALTER USER ... ACCOUNT UNLOCK", False),
    4151: ("the account is locked", "as an administrator: ALTER USER ... ACCOUNT UNLOCK", False),
    1226: ("a resource limit of the user is reached", "raise the limit with ALTER USER ... WITH ...", True),
    1044: ("the user has no right to the database", "GRANT SELECT ON the database TO the user", False),
    1045: (
        "access denied",
        "check user, password, the host the user may come from, and whether server or account demand TLS"
        " (require_secure_transport, REQUIRE SSL): then `tls` and the server's certificate",
        False,
    ),
    1184: (
        "the server's init_connect fails for this user",
        "correct it (SELECT @@GLOBAL.init_connect)",
        False,
    ),
    1698: ("access denied", "use a user with a password plugin, not unix_socket", False),
    1049: ("the database does not exist", "check `database` in the [source] section", False),
    1129: ("the server blocks this host", "run FLUSH HOSTS on the server", False),
    1130: ("the server refuses this host", "create the user for this host: CREATE USER ...@'host'", False),
    1820: ("the password has expired", "ALTER USER ... IDENTIFIED BY ...", False),
    1862: ("the password has expired", "ALTER USER ... IDENTIFIED BY ...", False),
    2003: ("the server can't be reached", "check host, port and firewall; is the server up?", True),
    3159: ("the server admits nobody without TLS", 'set tls = "verify-full" in the [source] section', False),
    2026: ("TLS can't be established", "check `tls` and the server's certificate", False),
}


@dataclass(frozen=True, slots=True)
class BinlogSource:
    """One database to migrate from. Raises ``ConfigError`` for a value that can't be.

    Attributes:
        server: of MySQL or MariaDB, and the login. The log may be silent for its ``silence_s`` (the server sends a
            heartbeat four times as often) before the connection counts as dead; chunks and watermarks may be silent
            three times as long.
        migration: name of the migration; the row of the watermark table.
        server_id: what the log reader calls itself; no other replica of this server may have it.
        part_rows: row changes after which a transaction is delivered in parts.
        placement: ``witness`` writes nothing; ``watermark`` writes DBLog's row (see ``watermark``).
        unproven: go on though the log has the last transaction read no longer, on an operator's word that it is the
            same log (see ``proof``).
        counterpart: name of the migration that writes into this database what was changed on the other side.
    """

    server: Server
    migration: str
    server_id: int
    part_rows: int = 50_000
    placement: str = "witness"
    unproven: bool = False
    counterpart: str = ""

    def __post_init__(self) -> None:
        """Refuses values that no server could accept."""
        problems = []
        if self.server.tls not in TLS_MODES:
            problems.append(("tls", self.server.tls, f"one of {', '.join(TLS_MODES)}"))
        if self.placement not in PLACEMENTS:
            problems.append(("placement", self.placement, f"one of {', '.join(PLACEMENTS)}"))
        if not 1 <= self.server_id < 2**32:
            problems.append(("server_id", str(self.server_id), "a number from 1 to 4294967295"))
        if self.server.silence_s <= 0:
            problems.append(("silence_s", str(self.server.silence_s), "more than 0"))
        if self.part_rows < 1:
            problems.append(("part_rows", str(self.part_rows), "at least 1"))
        for name, value, remedy in problems:
            raise ConfigError(f"source setting {name} can't be {value!r}", where=name, remedy=f"use {remedy}")

    @property
    def answer_timeout_s(self) -> float:
        """Returns how many seconds a statement of a chunk or a watermark may send nothing at all."""
        return 3 * self.server.silence_s


def default_server_id(migration: str) -> int:
    """A server id from the migration's name: stable over restarts, far from the small numbers people choose."""
    return 2**31 + zlib.crc32(migration.encode()) % 2**30


def connect(
    source: BinlogSource,
    *,
    read_timeout_s: float = READ_TIMEOUT_S,
    connection_class: type[Connection] = Connection,
    **options: Any,
) -> Any:
    """A PyMySQL connection with the session every reader relies on. Raises ``ConnectionFailed``.

    autocommit is on: PyMySQL's default would keep the first chunk's read view for all later chunks. Times are
    UTC and text is utf8mb4, so that values are printed as the log path prints them. ``options``: PyMySQL's.
    """
    with named_errors(source, "the source can't be reached"), _encrypted(source):
        return opened(source, READS, connection_class, read_timeout=read_timeout_s, **options)


def opened(
    source: BinlogSource, purpose: Settings, connection_class: type[Connection] = Connection, **options: Any
) -> Any:
    """A connection whose session is as ``purpose`` says. Raises PyMySQL's errors, and ``ConnectionFailed``."""
    connection = connection_class(
        **{
            "host": source.server.host,
            "port": source.server.port,
            "user": source.server.user,
            "password": (source.server.password or "").encode(),
            "database": source.server.database,
            "charset": "utf8mb4",
            "autocommit": None,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "read_timeout": READ_TIMEOUT_S,
            "write_timeout": WRITE_TIMEOUT_S,
            "program_name": f"migrator {source.migration}",
            **tls_options(source.server.tls, source.server.tls_ca),
            **options,
        }
    )
    try:
        pin(connection, purpose, source.server.address)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _encrypted(source: BinlogSource) -> Iterator[None]:
    """Names the error where a plugin asks for the password without TLS: it is never sent so. See ``tls_options``."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise ConnectionFailed(
            "the source can't be reached",
            where=source.server.address,
            cause=f"the user's password may not be sent without TLS: {error}",
            remedy='set tls = "require" (or better, verify-full) in the [source] section',
        ) from error


def tls_options(tls: str, ca: str | None) -> dict[str, Any]:
    """PyMySQL's options for one of ``TLS_MODES``. ``ca``: the authorities' file; the system's where there is none.

    Where there is no TLS and the package cryptography is installed (as keyring does it), PyMySQL would encrypt the
    password with a key that it asks of the server: of whoever answers. A key that is none makes it give up instead.
    """
    never = {"server_public_key": b"none"}
    if tls == "disable":
        return {"ssl_disabled": True, **never}
    if tls == "prefer":
        return never
    if tls == "require":
        return {"ssl": {"verify_mode": False}, **never}
    verify = {"verify_mode": True, "check_hostname": tls == "verify-full"}
    return {"ssl": {**verify, "ca": ca} if ca else {**verify, "capath": "/etc/ssl/certs"}, **never}


def login_problem(error: Exception) -> tuple[str, str, bool] | None:
    """Returns cause, remedy and whether to try again, for an error met while connecting; None for an unknown one."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    if code == 2003 and isinstance(getattr(error, "original_exception", None), ssl.SSLError):
        code = 2026
    return _CAUSES.get(code)


@contextmanager
def named_errors(source: BinlogSource, what: str) -> Iterator[None]:
    """PyMySQL's errors as ours: ``ConnectionFailed`` for lost or refused connections, else ``SourceError``."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(source, what, error) from error


def named(source: BinlogSource, what: str, error: Exception) -> MigratorError:
    """The error as ours."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    if isinstance(error, OSError) or code in LOST_CODES or isinstance(error, pymysql.err.InterfaceError):
        return ConnectionFailed(
            what,
            where=source.server.address,
            cause=f"the connection was lost: {message}",
            remedy="reading goes on once the server can be reached again",
            retryable=True,
        )
    known = login_problem(error)
    if known is not None:
        cause, remedy, retryable = known
        return ConnectionFailed(
            what, where=source.server.address, cause=f"{cause}: {message}", remedy=remedy, retryable=retryable
        )
    remedy = "see the cause"
    if code == PACKET_OVERFLOW:
        remedy = "on the source: SET GLOBAL max_allowed_packet = 1073741824, and go on"
    return SourceError(what, where=source.server.address, cause=f"error {code}: {message}", remedy=remedy)
