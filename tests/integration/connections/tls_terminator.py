"""TLS in front of a PostgreSQL server that has none, as pgbouncer or a load balancer would do it.

A client asks with SSLRequest (PostgreSQL documentation, "SSL Session Encryption") and is answered S; whoever
goes on without asking is cut off. Behind the handshake bytes are handed on as they are.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import suppress
from pathlib import Path

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_BLOCK_BYTES = 1 << 16


class TlsTerminator:
    """Listens on ``port`` of 127.0.0.1; a context manager."""

    def __init__(self, certificate: Path, server: tuple[str, int]):
        self._server = server
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> TlsTerminator:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the end
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):  # ssl.SSLError is one: a client that doesn't trust us
            if client.recv(8, socket.MSG_WAITALL) != _SSL_REQUEST:
                return
            client.sendall(b"S")
            with (
                self._context.wrap_socket(client, server_side=True) as inside,
                socket.create_connection(self._server) as server,
            ):
                back = threading.Thread(target=_hand_on, args=(server, inside), daemon=True)
                back.start()
                _hand_on(inside, server)
                back.join()


def _hand_on(source: socket.socket, sink: socket.socket) -> None:
    """Until the source ends; then the sink hears of it."""
    with suppress(OSError):
        while block := source.recv(_BLOCK_BYTES):
            sink.sendall(block)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
