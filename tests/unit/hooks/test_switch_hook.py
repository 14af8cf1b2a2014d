"""The hook of a cut-over: a command or a URL that fails is named, whatever it does, and nothing of it goes on."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

import pytest

from migrator.adapters.hooks import shell
from migrator.adapters.hooks.command import SwitchHook
from migrator.errors import CutoverError
from migrator.model.cutover.hook import is_url, url_problem
from migrator.model.cutover.record import Side, What
from tests.integration.waiting import await_true
from tests.servers import Database, server_of

SERVER = server_of(Database("h", 1, "d", "u", "", "postgresql"))
LIMIT_S = 0.5
Answers = Callable[[Callable[[socket.socket], None]], str]


def call(hook: str, limit_s: float = 20.0) -> None:
    SwitchHook({What.WRITES: hook}, "shop", dict.fromkeys(Side, SERVER)).call(Side.NEW, "1-new", limit_s)


def failure(hook: str, limit_s: float = 20.0) -> str:
    """The cause with which a call fails."""
    with pytest.raises(CutoverError, match="the hook of the cut-over failed") as error:
        call(hook, limit_s)
    assert error.value.where == hook
    assert error.value.remedy
    return error.value.cause


# -- commands


def test_a_command_gets_the_document_on_standard_input_and_in_variables(tmp_path: Path) -> None:
    found = tmp_path / "found"
    call(f"cat > {quote(str(found))}; test $MIGRATOR_SIDE = new")
    assert json.loads(found.read_text())["key"] == "shop-1-new"


def test_a_failing_command_is_named_with_what_it_said_in_whatever_encoding() -> None:
    assert failure("printf 'caf\\351'; exit 3") == "it ended with exit code 3: caf\ufffd"
    assert failure("echo out; echo err >&2; exit 3") == "it ended with exit code 3: err"
    assert failure("exit 3") == "it ended with exit code 3: it said nothing"
    assert "it can't be started" in failure("tr\0ue")


def test_output_that_is_no_text_is_no_failure() -> None:
    call("printf '\\351\\377'")


def test_more_output_than_a_pipe_holds_keeps_nobody_waiting() -> None:
    call("yes | head -c 3000000; yes | head -c 3000000 >&2")
    assert failure("yes | head -c 3000000; echo last; exit 1").endswith("last")


def test_of_a_command_past_its_limit_nothing_goes_on(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert "it didn't end within 0.5 s" in failure(f"(sleep 2; touch {quote(str(mark))}) & sleep 60", LIMIT_S)
    time.sleep(2.2)
    assert not mark.exists()


def test_whoever_ignores_the_request_to_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "_TERM_S", 0.3)
    mark = tmp_path / "mark"
    body = f"trap '' TERM; for i in 1 2 3 4; do sleep 0.5; done; touch {quote(str(mark))}"
    failure(f"({body}) & {body}", LIMIT_S)
    time.sleep(2.5)
    assert not mark.exists()


def test_of_a_command_that_failed_nothing_goes_on(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    failure(f"(sleep 1; touch {quote(str(mark))}) & exit 1")
    time.sleep(1.2)
    assert not mark.exists()


def test_a_child_left_behind_by_a_command_that_ended_well_may_go_on(tmp_path: Path) -> None:
    go, mark = tmp_path / "go", tmp_path / "mark"
    call(f"(until test -e {quote(str(go))}; do sleep 0.1; done; touch {quote(str(mark))}) & exit 0")
    go.touch()  # the call didn't wait for it
    await_true(mark.exists, "the child went on", 30)


# -- URLs


@pytest.fixture
def answers() -> Iterator[Answers]:
    """Starts a server whose every connection is handled so; returns its URL."""
    listening: list[socket.socket] = []

    def start(handle: Callable[[socket.socket], None]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                handle(connection)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/point"

    yield start
    for server in listening:
        server.close()


def whole(connection: socket.socket) -> bytes:
    """Reads one request."""
    read = b""
    while b"}" not in read:
        read += connection.recv(10_000)
    return read


def says(answer: bytes, requests: list[bytes] | None = None) -> Callable[[socket.socket], None]:
    """A server that answers everybody so."""

    def handle(connection: socket.socket) -> None:
        request = whole(connection)
        if requests is not None:
            requests.append(request)
        connection.sendall(answer)

    return handle


def test_a_url_gets_the_document_and_any_status_of_success_is_done(answers: Answers) -> None:
    requests: list[bytes] = []
    for status in (b"200 OK", b"204 No Content", b"299 Fine"):
        call(answers(says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n", requests)))
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /point ")
    assert b"Idempotency-Key: shop-1-new" in head
    assert json.loads(body)["side"] == "new"


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_a_redirect_is_a_failure_and_nobody_follows_it(answers: Answers, status: int) -> None:
    requests: list[bytes] = []
    elsewhere = answers(says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", requests))
    moved = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
    assert f"it answered {status}" in failure(answers(says(moved.encode())))
    assert requests == []


def test_a_refusal_is_named_with_what_it_said(answers: Answers) -> None:
    body = b"no caf\xe9"
    answer = b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    assert failure(answers(says(answer))) == "it answered 503: no caf\ufffd"


@pytest.mark.parametrize(
    "answer", [b"this is not http\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 70_000]
)
def test_an_answer_that_is_no_http_is_a_failure(answers: Answers, answer: bytes) -> None:
    assert "it can't be asked" in failure(answers(says(answer)))


@pytest.mark.parametrize(
    "hook",
    [
        "http://127.0.0.1/a b",
        "http://127.0.0.1:99999/x",
        "http://127.0.0.1:notaport/",
        "http://h\u00f6st.example/\u00fc",
        "http://[::1/x",
        "http:///x",
    ],
)
def test_a_url_that_is_none_is_refused_in_the_settings_and_fails_by_name(hook: str) -> None:
    assert is_url(hook)
    assert url_problem(hook)
    failure(hook, 5.0)


@pytest.mark.parametrize(
    "hook", ["", "point-it --at $MIGRATOR_SIDE", "HTTPS://example.com:8443/x?a=%20b", "http://[::1]:8/"]
)
def test_good_hooks_have_no_problem(hook: str) -> None:
    assert url_problem(hook) == ""


@pytest.mark.parametrize("hook", ["http://a:b@c/", "http://h:0/", "tr\0ue"])
def test_what_could_not_work_is_refused(hook: str) -> None:
    assert url_problem(hook)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "it can't be asked" in failure(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 503 No\r\n\r\n"])
def test_a_slow_answer_is_bounded_in_all(answers: Answers, first: bytes) -> None:
    """One byte after another keeps every timeout of the socket from passing."""
    over, ended = threading.Event(), list[bool]()

    def drips(connection: socket.socket) -> None:
        whole(connection)
        connection.sendall(first)
        for _ in range(600):
            if over.wait(0.05):
                return
            connection.sendall(b"x")
        ended.append(True)

    cause = failure(answers(drips), LIMIT_S)
    assert not ended, "it was read to its end"
    assert "within 0.5 s" in cause or "it answered 503" in cause
    over.set()
    for thread in [one for one in threading.enumerate() if one.name == "hook"]:
        thread.join(2.0)
        assert not thread.is_alive()
