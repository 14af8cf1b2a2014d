"""A real HTTP server that takes batches of events, drops those whose key it knows, and fails as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Received:
    """One batch that was taken: its key and bytes, and what was kept on disk when it came."""

    key: str
    body: bytes
    kept: bytes


@dataclass
class Inbox:
    """What one address of the server took.

    ``spool`` must hold the batch whenever one comes. ``replies`` answer the next requests in the place of the usual
    answer; None for one whose batch is taken and whose answer is lost. ``by_key`` is False for an API that
    ignores keys.
    """

    spool: Path | None = None
    batches: list[Received] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    replies: list[Reply | None] = field(default_factory=list)
    by_key: bool = True
    changed: list[str] = field(default_factory=list)

    def post(self, key: str, headers: dict[str, str], body: bytes) -> Reply | None:
        self.requests.append((key, headers, body))
        answer: Reply | None = (
            200,
            {"Content-Type": "application/json"},
            b'{"accepted": %d}' % body.count(b"\n"),
        )
        if self.replies:
            answer = self.replies.pop(0)
            if answer is not None:
                return answer
        known = next((one for one in self.batches if one.key == key), None) if self.by_key else None
        if known is None:
            kept = self.spool.read_bytes() if self.spool is not None else b""
            self.batches.append(Received(key, body, kept))
        elif known.body != body:
            self.changed.append(key)
        return answer

    def lines(self) -> list[bytes]:
        return [line + b"\n" for one in self.batches for line in one.body.split(b"\n")[:-1]]


class ApiServer:
    """A server on loopback; ``inbox`` makes an address."""

    def __init__(self, wrap: Callable[[ThreadingHTTPServer], None] | None = None) -> None:
        inboxes: dict[str, Inbox] = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = inboxes[self.path].post(headers["idempotency-key"], headers, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, more, said = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(said)), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(said)
                if more.get("Content-Length", str(len(said))) != str(len(said)):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        self._inboxes = inboxes
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.scheme = "http"
        if wrap is not None:
            wrap(self._server)
            self.scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def inbox(self) -> tuple[str, Inbox]:
        path = f"/events/{len(self._inboxes)}"
        self._inboxes[path] = Inbox()
        return f"{self.scheme}://127.0.0.1:{self._server.server_address[1]}{path}", self._inboxes[path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
