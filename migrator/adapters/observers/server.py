"""The address at which a process tells of itself: its live page, ``/metrics``, ``/healthz``, ``/readyz``, over HTTP.

What is told is put together when it is asked for, from what is known by then; a request waits for nothing of the run,
and the run for no request. Requests are answered by a few threads at most: more of them at once are refused.
"""

from __future__ import annotations

import hmac
import http.server
import io
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPMethod, HTTPStatus
from types import TracebackType
from typing import Any, Self

from migrator.adapters.observers.live_page import MOST_BYTES, Answer, LivePage, answer, refusal
from migrator.adapters.observers.metrics import CONTENT_TYPE, exposition
from migrator.errors import ConfigError
from migrator.model.observed.listening import Listening, is_loopback
from migrator.model.observed.observation import DUMPING, FILLING, LEADER, STANDING_BY, STREAMING, Observation
from migrator.model.observed.trouble import Trouble

_TIMEOUT_S = 5.0
_AT_ONCE = 8
_READY = (DUMPING, FILLING, STREAMING, STANDING_BY)
_IDLE = ("NothingApplied",)
"""Troubles of a leader that does nothing of its work, though both servers answer."""
_THERE_ARE = "there are /, /live.json, /hour.json, /metrics, /healthz, /readyz, and /requests to POST to"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer; the page has a policy of its own."""
_LOOPBACK = (
    "open it as 127.0.0.1 or localhost, also through a tunnel; for other names set a token in [observe]"
)
_TURN_ON = (
    "name a control_token in [observe]; on the machine `migrator dump start` and its siblings need none"
)


class ObserverServer:
    """Answers at an address while its block lasts.

    Args:
        listening: where, and to whom.
        look: what is known now; called by several threads.
        page: the live page; None: there is none.

    Raises ``ConfigError`` where the address can't be listened at, or a certificate can't be used.
    """

    def __init__(self, listening: Listening, look: Callable[[], Observation], page: LivePage | None = None):
        context = _tls(listening)
        six = ":" in listening.host
        try:
            self._server = _Server(listening, look, page, context, socket.AF_INET6 if six else socket.AF_INET)
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
        page: LivePage | None,
        context: ssl.SSLContext | None,
        family: socket.AddressFamily,
    ):
        self.address_family = family
        self.listening, self.look, self.page, self._context = listening, look, page, context
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


class _InTime(io.RawIOBase):
    """The bytes that a client sends, up to the time by which its whole request must be here.

    ``readinto`` raises ``TimeoutError``.
    """

    def __init__(self, connection: socket.socket):
        super().__init__()
        self._connection, self._ends = connection, time.monotonic() + _TIMEOUT_S

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.RawIOBase``."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "migrator", ""
    timeout = _TIMEOUT_S

    def setup(self) -> None:
        """Reads no request longer than its time: whoever sends it byte by byte keeps nobody's place."""
        super().setup()
        self.rfile = io.BufferedReader(_InTime(self.connection))

    def do_GET(self) -> None:
        """Answers a question."""
        path, page = self.path.partition("?")[0], self.server.page
        if page is not None and (found := page.open_to_all(path)) is not None:
            self._answer(found)
        elif not self._admitted():
            self._answer(
                refusal(HTTPStatus.UNAUTHORIZED, "a token is needed", remedy="send Authorization: Bearer ...")
            )
        elif path in ("/healthz", "/readyz"):
            self._health(path)
        elif self._strange_host():
            self._misdirected()
        elif path == "/metrics":
            self._answer(Answer(HTTPStatus.OK, CONTENT_TYPE, exposition(self.server.look())))
        elif page is not None and (found := page.for_readers(path, bool(self._control()))) is not None:
            self._answer(found)
        elif path == "/requests":
            self._answer(refusal(HTTPStatus.METHOD_NOT_ALLOWED, "requests are made by POST"), Allow="POST")
        else:
            self._answer(refusal(HTTPStatus.NOT_FOUND, _THERE_ARE))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Carries out a request, where a token permits it."""
        page = self.server.page
        if page is None or self.path != "/requests":
            self._answer(refusal(HTTPStatus.NOT_FOUND, "requests are made at /requests"))
        elif self._strange_host():
            self._misdirected()
        elif not self._control():
            self._answer(refusal(HTTPStatus.FORBIDDEN, "nothing can be asked for here", remedy=_TURN_ON))
        elif not self._brings(self._control()):
            reads = self._brings(self.server.listening.token)
            status = HTTPStatus.FORBIDDEN if reads else HTTPStatus.UNAUTHORIZED
            what = (
                "this token lets read, and ask for nothing"
                if reads
                else "a token that permits requests is needed"
            )
            self._answer(refusal(status, what, remedy="bring the one of [observe] control_token"))
        elif self.headers.get_content_type() != "application/json":
            self._answer(refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request is application/json"))
        elif not (length := self.headers.get("Content-Length", "")).isdecimal() or int(length) > MOST_BYTES:
            what = f"a request has a Content-Length of at most {MOST_BYTES} bytes"
            self._answer(refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, what))
        else:
            self._answer(page.request(self.rfile.read(int(length)), f"from {self.client_address[0]}"))

    def _health(self, path: str) -> None:
        seen = self.server.look()
        page = self.server.page
        why = "" if path == "/healthz" else not_ready(seen, () if page is None else page.live().troubles)
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        self._answer(answer(status, {"role": seen.role, "phase": seen.phase, "ready": not why, "why": why}))

    def _misdirected(self) -> None:
        what = f"this address is not known as {self.headers.get('Host', '')!r}"
        self._answer(refusal(HTTPStatus.MISDIRECTED_REQUEST, what, remedy=_LOOPBACK))

    def _control(self) -> str | None:
        return self.server.listening.control

    def _admitted(self) -> bool:
        token = self.server.listening.token
        return token is None or self._brings(token) or self._brings(self._control())

    def _brings(self, token: str | None) -> bool:
        brought = self.headers.get("Authorization", "")
        return token is not None and hmac.compare_digest(brought.encode(), f"Bearer {token}".encode())

    def _strange_host(self) -> bool:
        """Tells whether a browser was led here by a foreign name, where nothing else asks who reads.

        A browser always says by which name it comes.
        """
        listening = self.server.listening
        if listening.token is not None or listening.tls_client_ca or "Host" not in self.headers:
            return False
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        name = name.strip("[]").lower()
        return name != listening.host.lower() and not is_loopback(name)

    def _answer(self, found: Answer, **headers: str) -> None:
        self.connection.settimeout(_TIMEOUT_S)
        self.send_response(found.status)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        if found.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        for name, value in {**_HEADERS, **found.headers, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != HTTPMethod.HEAD:
            self.wfile.write(found.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the run's lines are the run's."""


def not_ready(seen: Observation, troubles: Sequence[Trouble] = ()) -> str:
    """Returns why a process isn't ready; empty where it is: it leads and works, or stands by while another leads."""
    if seen.phase not in _READY:
        return f"it is {seen.phase}"
    if seen.role == LEADER and seen.target.problem:
        return f"target: {seen.target.problem}"
    if seen.role == LEADER and seen.source.problem:
        return f"source: {seen.source.problem}"
    return next((one.what for one in troubles if one.name in _IDLE), "")
