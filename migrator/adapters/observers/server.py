"""The address at which a process tells of itself: ``/metrics``, ``/healthz``, ``/readyz``, over HTTP.

What is told is put together when it is asked for, from what is known by then; a request waits for nothing of the run,
and the run for no request. Requests are answered by a few threads at most: more of them at once are refused.
"""

from __future__ import annotations

import hmac
import http.server
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from migrator.adapters.observers.metrics import CONTENT_TYPE, exposition
from migrator.errors import ConfigError
from migrator.model.observed.listening import Listening
from migrator.model.observed.observation import DUMPING, FILLING, LEADER, STANDING_BY, STREAMING, Observation

_TIMEOUT_S = 5.0
_AT_ONCE = 8
_JSON = "application/json; charset=utf-8"
_READY = (DUMPING, FILLING, STREAMING, STANDING_BY)


class ObserverServer:
    """Answers at an address while its block lasts.

    Args:
        listening: where, and to whom.
        look: what is known now; called by several threads.

    Raises ``ConfigError`` where the address can't be listened at, or a certificate can't be used.
    """

    def __init__(self, listening: Listening, look: Callable[[], Observation]):
        context = _tls(listening)
        six = ":" in listening.host
        try:
            self._server = _Server(listening, look, context, socket.AF_INET6 if six else socket.AF_INET)
        except OSError as error:
            raise ConfigError(
                f"metrics can't be served at {listening.host}:{listening.port}",
                where="observe.listen",
                cause=error.strerror or str(error),
                remedy="choose a free port of this machine there, or for this process alone with --listen",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="observer", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened at."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _tls(listening: Listening) -> ssl.SSLContext | None:
    if not listening.tls_cert:
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(listening.tls_cert, listening.tls_key)
        if listening.tls_client_ca:
            context.load_verify_locations(listening.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            "the certificate for metrics can't be used",
            where="observe.tls_cert, observe.tls_key, observe.tls_client_ca",
            cause=str(error),
            remedy="name PEM files that belong together, the key without a password",
        ) from error
    return context


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        listening: Listening,
        look: Callable[[], Observation],
        context: ssl.SSLContext | None,
        family: socket.AddressFamily,
    ):
        self.address_family = family
        self.token, self.look, self._context = listening.token, look, context
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((listening.host, listening.port), _Handler)

    def server_bind(self) -> None:
        """Binds without asking a name server for our own name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread, if one of the few is free."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers one connection; the handshake of TLS is made here, where nobody else waits for it."""
        try:
            request.settimeout(_TIMEOUT_S)
            if self._context is not None:
                request = self._context.wrap_socket(request, server_side=True)
            super().process_request_thread(request, client_address)
        except OSError:  # a handshake that failed: the client is told by TLS
            self.shutdown_request(request)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that went away is no affair of the run's."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "migrator", ""
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Answers a request."""
        if not self._admitted():
            self._answer(HTTPStatus.UNAUTHORIZED, _JSON, _document(error="a token is needed"))
            return
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, CONTENT_TYPE, exposition(self.server.look()))
        elif path in ("/healthz", "/readyz"):
            self._health(path)
        else:
            self._answer(
                HTTPStatus.NOT_FOUND, _JSON, _document(error="there are /metrics, /healthz, /readyz")
            )

    do_HEAD = do_GET

    def _health(self, path: str) -> None:
        seen = self.server.look()
        why = "" if path == "/healthz" else not_ready(seen)
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        self._answer(status, _JSON, _document(role=seen.role, phase=seen.phase, ready=not why, why=why))

    def _admitted(self) -> bool:
        token = self.server.token
        brought = self.headers.get("Authorization", "")
        return token is None or hmac.compare_digest(brought.encode(), f"Bearer {token}".encode())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the run's lines are the run's."""


def not_ready(seen: Observation) -> str:
    """Returns why a process isn't ready; empty where it is: it leads and works, or stands by while another leads."""
    if seen.phase not in _READY:
        return f"it is {seen.phase}"
    if seen.role == LEADER and seen.target.problem:
        return f"target: {seen.target.problem}"
    if seen.role == LEADER and seen.source.problem:
        return f"source: {seen.source.problem}"
    return ""


def _document(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"
