"""Answers of an API: which are asked again, which are refused and how, over real sockets; nothing secret is said."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from migrator.adapters.outputs.http_api.api import Api, Endpoint
from migrator.adapters.outputs.http_api.output import Bounds, HttpOutput
from migrator.adapters.outputs.http_api.refusal import Answer, Request
from migrator.adapters.outputs.http_api.spool import Batch, Spool
from migrator.errors import OutputError
from migrator.model.position import Position
from migrator.ports.output import SegmentEvents
from tests.contract.outputs.api_server import ApiServer, Inbox, Reply

CERTIFICATES = Path(__file__).parents[2] / "certificates"
TOKEN = "swordfish-and-more"
BODY = b'{"n":1}\n{"n":2}\n'


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    running = ApiServer()
    yield running
    running.close()


class Waits:
    """A clock that only waiting moves."""

    def __init__(self, stop_after: int = 1 << 30) -> None:
        self.waited: list[float] = []
        self._stop_after = stop_after

    def pause(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return len(self.waited) >= self._stop_after

    def clock(self) -> float:
        return sum(self.waited)


def sent(
    server: ApiServer, *replies: Reply | None, stop_after: int = 1 << 30, answer_s: float = 30.0
) -> tuple[Inbox, Waits]:
    url, inbox = server.inbox()
    inbox.replies = list(replies)
    waits = Waits(stop_after)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    api = Api(
        Endpoint(f"{url}", headers, None, answer_s, 900), waits.pause, waits.clock, lambda: 1_000_000_000.0
    )
    try:
        api.send(Request(url, "k-1", 2, [TOKEN]), BODY, {"Idempotency-Key": "k-1"})
    finally:
        api.close()
    return inbox, waits


def refused(server: ApiServer, *replies: Reply | None, stop_after: int = 1 << 30) -> OutputError:
    with pytest.raises(OutputError) as caught:
        sent(server, *replies, stop_after=stop_after)
    said = "\n".join(caught.value.lines())
    assert TOKEN not in said
    assert caught.value.remedy
    assert "k-1" in caught.value.where
    return caught.value


def plain(status: int, body: bytes = b"no", **headers: str) -> Reply:
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_asked_again_with_the_same_key_and_bytes(server: ApiServer, status: int) -> None:
    random.seed(1)
    inbox, waits = sent(server, plain(status), plain(status), plain(status))
    assert [(key, body) for key, _, body in inbox.requests] == [("k-1", BODY)] * 4
    assert len(inbox.batches) == 1
    first, second, third = waits.waited
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0


def test_a_lost_answer_is_asked_for_again(server: ApiServer) -> None:
    inbox, _ = sent(server, None)
    assert len(inbox.requests) == 2
    assert len(inbox.batches) == 1


def test_a_torn_answer_is_asked_for_again(server: ApiServer) -> None:
    inbox, waits = sent(server, (200, {"Content-Length": "50"}, b'{"accep'))
    assert len(inbox.requests) == 2
    assert len(waits.waited) == 1


@pytest.mark.parametrize(
    ("text", "wait"), [("7", 7.0), ("Sun, 09 Sep 2001 01:47:00 GMT", 20.0), ("soon", None), ("-3", None)]
)
def test_retry_after_is_honoured(server: ApiServer, text: str, wait: float | None) -> None:
    _, waits = sent(server, plain(503, Retry_After=text))
    assert waits.waited == [wait] if wait is not None else waits.waited[0] <= 0.5


@pytest.mark.parametrize("text", ["0", "Thu, 01 Jan 1970 00:00:00 GMT", "Sun, 09 Sep 2001 01:46:40 GMT"])
def test_who_asks_for_no_wait_is_asked_no_faster(server: ApiServer, text: str) -> None:
    """Else an API that is overloaded would be asked without a pause until patience ends."""
    _, waits = sent(server, *[plain(429, Retry_After=text)] * 4)
    assert all(wait >= 0.25 for wait in waits.waited)
    assert waits.waited[3] > waits.waited[0] * 2


def test_patience_ends_with_the_last_cause(server: ApiServer) -> None:
    error = refused(server, *[plain(503, b"down for repair")] * 200)
    assert error.what == "the API has taken no events for too long"
    assert "status 503: down for repair" in error.cause
    error = refused(server, plain(429, Retry_After="86400"))
    assert "asks for 86400 s more" in error.cause


def test_a_stop_ends_the_waiting(server: ApiServer) -> None:
    assert refused(server, *[plain(500)] * 9, stop_after=3).what == "stopped while the API took no events"


@pytest.mark.parametrize(
    ("reply", "what", "said", "remedy"),
    [
        (plain(400, b"bad \x1b[31m" + TOKEN.encode()), "refuses a batch", "status 400: bad [31m…", "correct the API"),
        (plain(401), "refuses a batch", "status 401: no", "--token-file"),
        (plain(404, b""), "refuses a batch", "status 404: (no words)", "--name"),
        (plain(413), "refuses a batch", "status 413", "--batch-bytes"),
        (plain(501), "refuses a batch", "status 501", "correct the API"),
        (plain(308, Location="https://other/x"), "sends somebody elsewhere", "308 to https://other/x", "--name"),
        (plain(200, b"<!doctype html><p>Log in"), "no API: it sent a page", "Log in", "login's page"),
        (plain(200, b"hello", Content_Type="text/html"), "no API: it sent a page", "hello", "login's page"),
        (plain(200, b'{"accepted": 1}'), "batch of 2 events in part", '"accepted": 1', "whole or not at all"),
        (plain(207, b"[]"), "batch of 2 events in part", "status 207", "whole or not at all"),
        (plain(200, b"{nothing"), "answer can't be read", "{nothing", "must be one"),
        (plain(200, b'{"a":' * 10_000), "answer can't be read", '{"a":{"a":', "must be one"),
        (plain(200, b'{"a":"%s"}' % (b"x" * 70_000)), "answer can't be read", "the first 65536 bytes are", "short"),
        (plain(400, b"x" * 5000), "refuses a batch", f"status 400: {'x' * 200}…", "correct the API"),
    ],
)  # fmt: skip
def test_bad_answers_are_named(server: ApiServer, reply: Reply, what: str, said: str, remedy: str) -> None:
    error = refused(server, reply)
    assert what in error.what
    assert said in error.cause
    assert remedy in error.remedy
    assert error.where.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("reply", [plain(200, b""), plain(204, b""), plain(202, b"ok"), plain(201, b"[1]")])
def test_good_answers_need_no_words(server: ApiServer, reply: Reply) -> None:
    assert len(sent(server, reply)[0].requests) == 1


def test_nobody_there_is_asked_again_until_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    waits = Waits()
    api = Api(Endpoint(f"http://127.0.0.1:{port}/x"), waits.pause, waits.clock)
    with pytest.raises(OutputError, match="no events for too long") as caught:
        api.send(Request("http://h/x?token=secret", "k", 1), b"{}\n", {})
    assert "ConnectionRefusedError" in caught.value.cause
    assert "secret" not in str(caught.value)


def test_who_accepts_and_says_nothing_is_left_after_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waits = Waits(stop_after=1)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        api = Api(Endpoint(url, answer_s=0.2), waits.pause, waits.clock)
        with pytest.raises(OutputError, match="stopped") as caught:
            api.send(Request(url, "k", 1), b"{}\n", {})
    assert "no answer within 0.2 s" in caught.value.cause


def encrypted(server: ThreadingHTTPServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)


def test_certificates_are_verified_and_errors_of_tls_named(server: ApiServer) -> None:
    secure = ApiServer(encrypted)
    try:
        url, inbox = secure.inbox()
        fine = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem"))
        other = ssl.create_default_context(cafile=str(CERTIFICATES / "other_ca.pem"))
        fine_api = Api(Endpoint(url, {}, fine), Waits().pause)
        fine_api.send(Request(url, "k", 2), BODY, {"Idempotency-Key": "k"})
        fine_api.close()
        assert len(inbox.batches) == 1
        with pytest.raises(OutputError, match="certificate isn't believed") as caught:
            Api(Endpoint(url, {}, other), Waits().pause).send(Request(url, "k", 2), BODY, {})
        assert "--ca" in caught.value.remedy
    finally:
        secure.close()
    url = server.inbox()[0].replace("http://", "https://")
    with pytest.raises(OutputError, match="no encrypted connection") as caught:
        Api(Endpoint(url, {}, fine), Waits().pause).send(Request(url, "k", 2), BODY, {})
    assert "http://" in caught.value.remedy


def test_a_batch_that_is_too_large_is_batched_anew(server: ApiServer, tmp_path: Path) -> None:
    """The remedy of 413: whoever comes back with a smaller bound sends the same events under other keys."""
    url, inbox = server.inbox()
    inbox.replies = [plain(200, b""), plain(413)]
    spool, request = Spool(tmp_path / "b"), Request(url, "", 0)
    first = HttpOutput(request, Api(Endpoint(url), Waits().pause), spool, numbered_lines, Bounds())
    assert first.open(None) is None
    first.write(segment(1))
    assert first.commit(1) == 1
    first.write(segment(2))
    with pytest.raises(OutputError, match="refuses a batch"):
        first.commit(2)
    again = HttpOutput(request, Api(Endpoint(url), Waits().pause), spool, numbered_lines, Bounds(bytes=10))
    assert again.open(1) is None, "nothing is held beyond the mark"
    again.write(segment(2))
    assert again.commit(2) == 3
    again.close()
    first.close()
    assert inbox.lines() == [b'{"n":21}\n', b'{"n":22}\n']
    assert [int(headers["migrator-batch"]) for _, headers, _ in inbox.requests] == [1, 2, 2, 3]


def segment(number: int) -> SegmentEvents:
    return SegmentEvents(number, Position(number, ""), 0, ())


def numbered_lines(events: SegmentEvents) -> list[tuple[int, bytes]]:
    """Two lines for each segment."""
    return [(number, b'{"n":%d}\n' % (events.segment * 10 + number)) for number in (1, 2)]


def test_a_spool_that_was_edited_is_named(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "b")
    spool.write(Batch("s", 1, (0, 0), (1, 1), 1, b"{}\n"))
    assert spool.read() == Batch("s", 1, (0, 0), (1, 1), 1, b"{}\n")
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes()[:-1])
    with pytest.raises(OutputError, match="can't be used"):
        spool.read()


def test_what_was_taken_and_is_not_known_any_more_is_named(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/x"
    api, spool = Api(Endpoint(url), Waits().pause), Spool(tmp_path / "b")
    output = HttpOutput(Request(url, "", 0), api, spool, numbered_lines, Bounds())
    assert output.open(0) is None
    with pytest.raises(OutputError, match="isn't known any more"):
        output.open(3)
    Spool(tmp_path / "b").write(Batch("s", 2, (0, 0), (1, 1), 1, b"{}\n"))
    with pytest.raises(OutputError, match="isn't known any more"):
        output.open(3)


def test_an_endpoint_shows_no_header() -> None:
    assert TOKEN not in repr(Endpoint("http://h/", {"Authorization": TOKEN}))
    assert Answer(retry_after="").wait_s(0) is None
