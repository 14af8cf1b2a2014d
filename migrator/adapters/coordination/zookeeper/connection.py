"""A ZooKeeper session through kazoo: login, deadlines, and errors by name."""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    SASLException,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from migrator.errors import ConnectionFailed
from migrator.model.coordination import Coordination

Pending = Callable[[KazooClient], Any]
"""Begins a call on a client and returns kazoo's asynchronous result."""

_LOST = (KazooTimeoutError, ConnectionLoss, SessionExpiredError, ConnectionClosedError)
_REFUSED = (NoAuthError, AuthFailedError, InvalidACLError, SASLException)
_FIRST_ANSWER_S = 10.0


class _Said(logging.Handler):
    """Keeps kazoo's last warning: its errors only say that the time is over."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.logger = logging.Logger("zookeeper")  # its own: nothing goes to standard error
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "retry policy" not in text:  # that one says nothing
            self.last = text


class ZooKeeperSession:
    """A client, its session started on first use, below one migration's node.

    A session that expires is replaced by the client itself: who depends on one (see ``leadership``) must
    see to it. Threads may share it, once ``client`` was called.

    Args:
        settings: the ensemble.
        migration: names the node.
    """

    def __init__(self, settings: Coordination, migration: str):
        self._settings = settings
        self.root = settings.root(migration)
        self.address = settings.address(migration)
        self.acl = OPEN_ACL_UNSAFE if settings.auth == "none" else CREATOR_ALL_ACL
        self.timeout_s = settings.session_s
        self._client: KazooClient | None = None
        self._end: Callable[[], object] | None = None
        self._said = _Said()
        self._closed = False

    def path(self, name: str) -> str:
        """Full path of a node of the migration."""
        return f"{self.root}/{name}"

    def client(self) -> KazooClient:
        """The client, started. Raises ``ConnectionFailed``."""
        if self._closed:
            raise ConnectionFailed("the ZooKeeper session was closed", where=self.address)
        if self._client is None:
            client = self._new_client()
            with self._named("ZooKeeper can't be reached"):
                try:
                    client.start(timeout=_FIRST_ANSWER_S)
                    client.ensure_path_async(self.root, acl=self.acl).get(timeout=_FIRST_ANSWER_S)
                except BaseException:
                    _close(client)
                    raise
            self._client = client
            self._end = weakref.finalize(self, _close, client)
        return self._client

    def connected(self) -> bool:
        """Tells whether the ensemble can be asked, as far as is known."""
        return self._client is not None and not self._closed and bool(self._client.connected)

    def ask(self, pending: Pending, timeout_s: float | None = None) -> Any:
        """The result of a call, within the session's timeout.

        Raises ``ConnectionFailed`` (retryable where the line is to blame: the outcome of a change is unknown then),
        and what kazoo raises for a node in an unexpected state: no such node, another version and so on.
        """
        client = self.client()
        with self._named("ZooKeeper doesn't answer"):
            return pending(client).get(timeout=timeout_s or self.timeout_s)

    def close(self) -> None:
        """Ends the session and its ephemeral nodes, for good. Safe to call twice."""
        self._closed = True
        if self._end is not None:
            self._end()

    def _new_client(self) -> KazooClient:
        settings = self._settings
        handler = SequentialThreadingHandler()
        login = f"{settings.user}:{settings.password}"
        sasl = {"mechanism": "DIGEST-MD5", "username": settings.user, "password": settings.password}
        client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_s,
            handler=handler,
            default_acl=self.acl,
            auth_data=[("digest", login)] if settings.auth == "digest" else None,
            sasl_options=sasl if settings.auth == "sasl" else None,
            # Quick: a member that died must cost less than the lease.
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, backoff=2, max_delay=0.5, sleep_func=handler.sleep_func
            ),
            logger=self._said.logger,
            use_ssl=settings.tls != "disable",
            verify_certs=True,
            check_hostname=settings.tls == "verify-full",
            ca=settings.tls_ca or None,
            certfile=settings.tls_cert or None,
            keyfile=settings.tls_key or None,
            keyfile_password=settings.tls_key_password,
        )
        self._note_granted_timeout(client)
        return client

    def _note_granted_timeout(self, client: KazooClient) -> None:
        """The ensemble may grant a shorter session than was asked for; kazoo only uses it, for its own timeouts.

        ``ConnectionHandler._connect`` returns two thirds of it in milliseconds. A lease that believed in the longer
        one would outlive its session.
        """
        connect = client._connection._connect
        this = weakref.ref(self)

        def noted(*arguments: Any, **options: Any) -> Any:
            read_ms, connect_ms = connect(*arguments, **options)
            session = this()
            if session is not None:
                session.timeout_s = read_ms * 1.5 / 1000
            return read_ms, connect_ms

        client._connection._connect = noted

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except _REFUSED as error:
            raise ConnectionFailed(
                "ZooKeeper refuses what the migration needs",
                where=self.address,
                cause=f"{type(error).__name__}: the login, or an ACL of this node or one above it",
                remedy="check [coordination] auth, user and password; nodes that another login made stay its own",
            ) from error
        except BadArgumentsError as error:
            raise ConnectionFailed(
                "ZooKeeper refuses the path", where=self.address, cause=str(error), remedy="correct path"
            ) from error
        except _LOST as error:
            raise ConnectionFailed(
                what,
                where=self.address,
                cause="; ".join(
                    part for part in (str(error) or type(error).__name__, self._said.last) if part
                ),
                remedy="check [coordination] hosts, TLS and login, that most of the ensemble's members run, and that "
                "its maxClientCnxns isn't reached for this machine",
                retryable=True,
            ) from error


def _close(client: KazooClient) -> None:
    """Ends a client in any state. A collector may call this in kazoo's own thread, which can't be joined."""
    with contextlib.suppress(Exception):
        client.stop()
        client.close()
