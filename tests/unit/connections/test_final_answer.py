"""Interim answers of HTTP servers: none of our clients takes one for the answer."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from migrator.adapters.hooks.post import posted
from migrator.adapters.outputs.http_api.api import Api, Endpoint
from migrator.adapters.outputs.http_api.refusal import Request
from migrator.errors import OutputError

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
INTERIM = (b"", HINTS, b"HTTP/1.1 100 Continue\r\n\r\n" + HINTS, b"HTTP/1.1 102 Processing\r\n\r\n" * 3)
TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REFUSED = b"HTTP/1.1 422 No\r\nContent-Length: 4\r\n\r\nnope"


@contextmanager
def answering(words: bytes) -> Iterator[str]:
    """A server that answers each request of a connection by these bytes; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as asked:
                while asked.readline():
                    headers = http.client.parse_headers(asked)
                    asked.read(int(headers["Content-Length"]))
                    connection.sendall(words)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join(10)


def told_by_hook(url: str) -> str:
    return posted(url, b"{}", {}, 10, 100)


def told_by_api(url: str) -> str:
    """Two batches over one connection; how the first one that wasn't taken was refused."""
    api = Api(Endpoint(url, {}, None, 10, 20), lambda _: False, lambda: 0.0, lambda: 0.0)
    try:
        for key in ("k-1", "k-2"):
            api.send(Request(url, key, 1, []), b"{}", {})
    except OutputError as error:
        return error.cause
    finally:
        api.close()
    return ""


@pytest.mark.parametrize("told", [told_by_hook, told_by_api])
@pytest.mark.parametrize("before", INTERIM)
def test_the_answer_is_what_comes_behind_all_interim_ones(told: Callable[[str], str], before: bytes) -> None:
    with answering(before + TAKEN) as url:
        assert told(url) == ""
    with answering(before + REFUSED) as url:
        failure = told(url)
    assert "422" in failure
    assert "nope" in failure


def test_another_protocol_is_an_answer_of_its_own() -> None:
    with answering(b"HTTP/1.1 101 Switching Protocols\r\n\r\n") as url:
        assert "101" in told_by_hook(url)
