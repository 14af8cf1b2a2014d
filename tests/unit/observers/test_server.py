"""The address of metrics and health: who is let in, what is told, and that nobody waits for anybody."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.observers import server
from migrator.adapters.observers.server import ObserverServer
from migrator.errors import ConfigError
from migrator.model.observed.listening import Listening
from migrator.model.observed.observation import (
    DUMPING,
    LEADER,
    STANDBY,
    STANDING_BY,
    STARTING,
    STREAMING,
    Lag,
    Observation,
    Server,
)

CERTIFICATES = Path(__file__).parents[2] / "certificates"
ANSWERS = Server(0.01, "")
SEEN = Observation(
    "shop", 2, 1, LEADER, STREAMING, lag=Lag(3, 1.5, 1.5, ""), source=ANSWERS, target=ANSWERS, epoch=7
)
HERE = Listening("127.0.0.1", 0)


class Asked:
    """A server of one observation."""

    def __init__(self, listening: Listening, seen: Observation = SEEN):
        self.seen = seen
        self.server = ObserverServer(listening, lambda: self.seen)

    def get(
        self, path: str, context: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, str]:
        port = self.server.port
        if context is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def asked() -> Iterator[Asked]:
    found = Asked(HERE)
    with found.server:
        yield found


def test_metrics_are_told_as_prometheus_reads_them(asked: Asked) -> None:
    status, headers, text = asked.get("/metrics?x=1")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'migrator_lag_seconds{migration="shop"} 1.5\n' in text
    assert 'migrator_lag_distance{migration="shop",unit="bytes"} 3.0\n' in text
    asked.seen = replace(SEEN, lag=Lag(None, None, 9.0, "silent"))
    _, _, text = asked.get("/metrics")
    assert "migrator_lag_seconds{" not in text, "what is unknown is missing, and no number"
    assert 'migrator_lag_known{migration="shop"} 0.0\n' in text
    assert 'migrator_lag_at_most_seconds{migration="shop"} 9.0\n' in text


@pytest.mark.parametrize(
    ("seen", "ready"),
    [
        (SEEN, True),
        (replace(SEEN, phase=DUMPING), True),
        (replace(SEEN, phase=STARTING), False),
        (replace(SEEN, role=STANDBY, phase=STANDING_BY, target=Server()), True),
        (replace(SEEN, role=STANDBY, phase=STARTING), False),
        (replace(SEEN, target=Server(None, "it is gone")), False),
        (replace(SEEN, source=Server(None, "it is gone")), False),
    ],
)
def test_ready_is_who_works_or_stands_by(asked: Asked, seen: Observation, ready: bool) -> None:
    asked.seen = seen
    status, _, text = asked.get("/readyz")
    told_of = json.loads(text)
    assert (status, told_of["ready"], bool(told_of["why"])) == (200 if ready else 503, ready, not ready)
    assert asked.get("/healthz")[0] == 200, "it lives in any case"


def test_there_is_nothing_else(asked: Asked) -> None:
    assert asked.get("/")[0] == 404
    assert asked.get("/metrics/../etc/passwd")[0] == 404


def test_a_client_that_says_nothing_keeps_nobody_waiting_and_many_are_refused(asked: Asked) -> None:
    silent = [socket.create_connection(("127.0.0.1", asked.server.port), timeout=10) for _ in range(7)]
    try:
        assert asked.get("/metrics")[0] == 200
        silent += [socket.create_connection(("127.0.0.1", asked.server.port), timeout=10) for _ in range(8)]
        assert silent[-1].recv(1) == b"", "it is closed at once"
    finally:
        for one in silent:
            one.close()


def test_a_request_that_is_sent_byte_by_byte_keeps_no_place(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte would begin the time anew, and a probe of /healthz would find all places taken for good."""
    monkeypatch.setattr(server, "_TIMEOUT_S", 0.5)
    slow = [socket.create_connection(("127.0.0.1", asked.server.port), timeout=10) for _ in range(8)]
    done = threading.Event()

    def drip() -> None:
        for one in slow:
            one.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
        while not done.wait(0.05):
            for one in slow:
                with suppress(OSError):
                    one.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert all(one.recv(1) == b"" for one in slow), "closed, though it has more to say"
        assert asked.get("/healthz")[0] == 200
    finally:
        done.set()
        thread.join()
        for one in slow:
            one.close()


def test_a_token_is_asked_for() -> None:
    asked = Asked(replace(HERE, token="geheim"))
    with asked.server:
        assert asked.get("/metrics")[0] == 401
        assert asked.get("/healthz", Authorization="Bearer geheimer")[0] == 401
        assert asked.get("/metrics", Authorization="Basic geheim")[0] == 401
        status, _, text = asked.get("/metrics", Authorization="Bearer geheim")
        assert (status, "migrator_leading" in text) == (200, True)
    assert "geheim" not in repr(replace(HERE, token="geheim"))


def test_clients_show_a_certificate_of_the_right_authority() -> None:
    own = str(CERTIFICATES / "server.pem")
    asked = Asked(replace(HERE, tls_cert=own, tls_key=own, tls_client_ca=str(CERTIFICATES / "ca.pem")))
    context = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem"))
    with asked.server:
        with pytest.raises((ssl.SSLError, OSError, http.client.RemoteDisconnected)):
            asked.get("/metrics", context)
        with pytest.raises((OSError, http.client.HTTPException)):
            asked.get("/metrics")
        context.load_cert_chain(CERTIFICATES / "client.pem")
        assert asked.get("/metrics", context)[0] == 200


def test_what_cannot_be_listened_at_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"can't be served at 127.0.0.1:{port}") as caught:
            ObserverServer(Listening("127.0.0.1", port), lambda: SEEN)
    assert (caught.value.where, "in use" in caught.value.cause) == ("observe.listen", True)
    assert "--listen" in caught.value.remedy
    with pytest.raises(ConfigError, match="certificate for metrics"):
        ObserverServer(replace(HERE, tls_cert=str(CERTIFICATES / "ca.pem"), tls_key=__file__), lambda: SEEN)
