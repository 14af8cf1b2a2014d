"""Sends a body to an API until it is taken, and says what became of it."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from migrator.adapters.outputs.http_api.refusal import Answer, Request, judged, stopped, too_long
from migrator.connections.final_answer import FinalResponse

_FIRST_S, _LONGEST_S = 0.5, 30.0
_MOST_BYTES = 64 << 10
"""The most of an answer that is read."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The API's address and how it is asked.

    Attributes:
        url: of http or https.
        headers: sent with each request; their values are secret.
        tls: for https; None for the machine's own authorities.
        answer_s: one request may take so long in all.
        patience_s: an API that takes nothing is given up after so long.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    answer_s: float = 60.0
    patience_s: float = 900.0


class Api:
    """One connection, kept open between requests. One thread uses it.

    Args:
        endpoint: the API.
        pause: waits so many seconds; returns whether a stop is requested.
        clock: seconds, of no special beginning.
        now: seconds since 1970, for an answer that names a moment.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        pause: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._endpoint = endpoint
        self._pause = pause
        self._clock = clock
        self._now = now
        self._connection: http.client.HTTPConnection | None = None

    def send(self, request: Request, body: bytes, headers: Mapping[str, str]) -> None:
        """Sends it again and again until it is taken.

        Raises ``OutputError`` for a refusal that no repetition mends, for an API that took nothing for
        ``patience_s``, and where a stop is requested meanwhile.
        """
        since, tries, wait_s = self._clock(), 0, _FIRST_S
        while True:
            answer = self._ask(body, headers)
            problem = judged(answer, request)
            if problem is None:
                return
            if not problem.retryable:
                raise problem
            tries += 1
            asked_s = answer.wait_s(self._now())
            # Who asks for no wait at all is not asked faster than who asks for nothing.
            own_s = random.uniform(wait_s / 2, wait_s)
            pause_s = own_s if asked_s is None or asked_s < _FIRST_S else asked_s
            if self._clock() - since + pause_s > self._endpoint.patience_s:
                raise too_long(problem, tries, self._clock() - since, asked_s) from problem
            if self._pause(pause_s):
                raise stopped(problem) from problem
            wait_s = min(wait_s * 2, _LONGEST_S)

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """One request. A connection that was kept open may have been closed by now: then it is a new one's turn."""
        kept = self._connection is not None
        answer = self._once(body, headers)
        if kept and isinstance(answer.failure, http.client.RemoteDisconnected | ConnectionError):
            answer = self._once(body, headers)
        return answer

    def _once(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        connection = self._connection = self._connection or self._connect()
        late = threading.Event()

        def end() -> None:
            late.set()
            there = connection.sock
            if there is not None:
                with suppress(OSError):
                    there.shutdown(socket.SHUT_RDWR)

        # A socket's timeout starts anew with each byte; this one is for the whole.
        watch = threading.Timer(self._endpoint.answer_s, end)
        watch.daemon = True
        watch.start()
        try:
            return self._answer(connection, body, headers)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            failure = (
                TimeoutError(f"it gave no answer within {self._endpoint.answer_s:g} s")
                if late.is_set() or isinstance(error, TimeoutError)
                else error
            )
            return Answer(failure=failure)
        finally:
            watch.cancel()

    def _answer(
        self, connection: http.client.HTTPConnection, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        parts = urlsplit(self._endpoint.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.response_class = FinalResponse
        connection.request("POST", path, body, {**self._endpoint.headers, **headers})
        response = connection.getresponse()
        said = response.read(_MOST_BYTES)
        whole = response.isclosed()
        if not whole and len(said) < _MOST_BYTES:
            raise http.client.IncompleteRead(said)
        if not whole or response.will_close:
            self.close()
        return Answer(
            status=response.status,
            body=said,
            whole=whole,
            content_type=response.headers.get("Content-Type", ""),
            location=response.headers.get("Location", ""),
            retry_after=response.headers.get("Retry-After", ""),
        )

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._endpoint.url)
        assert parts.hostname is not None  # checked where settings are read
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._endpoint.answer_s)
        tls = self._endpoint.tls or ssl.create_default_context()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=self._endpoint.answer_s, context=tls
        )
