"""A POST that gets so many seconds in all, and follows nobody elsewhere."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from migrator.connections.final_answer import FinalResponse


def posted(url: str, body: bytes, headers: Mapping[str, str], limit_s: float, characters: int) -> str:
    """Sends a POST; returns why it failed, in words, and an empty text where the answer's status is 2xx.

    Args:
        url: of http or https.
        body: what is sent.
        headers: with it.
        limit_s: from now until the answer's status, whatever keeps it: a name, a connection, or a slow answer.
        characters: that are kept of what a failure says.
    """
    answer: Future[str] = Future()
    connections = _Connections()

    def ask() -> None:
        try:
            request = urllib.request.Request(url, body, dict(headers), method="POST")
            answer.set_result(_answer(connections, request, limit_s, characters))
        except BaseException as error:  # noqa: BLE001  raised again by whoever waits for the answer
            answer.set_exception(error)

    # A socket's timeout starts anew with every byte, and none holds for the name's address: another thread can wait.
    threading.Thread(target=ask, daemon=True, name="hook").start()
    try:
        return answer.result(limit_s)
    except TimeoutError:
        return f"it gave no answer within {limit_s:g} s"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"it can't be asked: {error or type(error).__name__}"
    finally:
        connections.close()


def _answer(connections: _Connections, request: urllib.request.Request, limit_s: float, most: int) -> str:
    until = time.monotonic() + limit_s
    opener = urllib.request.build_opener(_NoRedirects, _Plain(connections), _Encrypted(connections))
    try:
        with opener.open(request, timeout=limit_s):
            return ""
    except urllib.error.HTTPError as error:
        said = b""
        with error, suppress(OSError, http.client.HTTPException):
            while len(said) < most and time.monotonic() < until and (part := error.read1(most)):
                said += part
        where = f" to {error.headers['Location']}, which isn't followed" if _elsewhere(error) else ""
        words = said.decode(errors="replace").strip()[:most]
        return f"it answered {error.code}{where}: {words or 'it said nothing'}"


def _elsewhere(error: urllib.error.HTTPError) -> bool:
    return 300 <= error.code < 400 and bool(error.headers.get("Location"))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nobody: what is done elsewhere, and with GET, isn't what was asked."""

    def redirect_request(self, *_: Any) -> None:
        """Nothing is asked instead."""


class _Connections:
    """The connections of one request, which another thread may end."""

    def __init__(self) -> None:
        self._every: list[http.client.HTTPConnection] = []

    def of(self, kind: type[http.client.HTTPConnection], *place: Any, **options: Any) -> Any:
        """Makes one, and remembers it."""
        connection = kind(*place, **options)
        connection.response_class = FinalResponse
        self._every.append(connection)
        return connection

    def close(self) -> None:
        """Ends whoever reads or writes there."""
        for one in self._every:
            there = one.sock
            if there is not None:
                with suppress(OSError):
                    there.shutdown(socket.SHUT_RDWR)


class _Plain(urllib.request.HTTPHandler):
    """http, over connections that can be ended."""

    def __init__(self, connections: _Connections):
        super().__init__()
        self._connections = connections

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a request."""
        return self.do_open(partial(self._connections.of, http.client.HTTPConnection), req)


class _Encrypted(urllib.request.HTTPSHandler):
    """https likewise."""

    def __init__(self, connections: _Connections):
        super().__init__()
        self._connections = connections

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a request."""
        return self.do_open(partial(self._connections.of, http.client.HTTPSConnection), req)
