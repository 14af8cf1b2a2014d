"""Calls that may never return: their results and errors pass, silence ends them, work that goes on does not."""

from __future__ import annotations

import _thread
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from migrator.connections.patience import (
    Line,
    SilentError,
    WatchedSession,
    carried_bytes,
    patiently,
)

DEADLINE_S = 10.0


def never() -> bool:
    raise AssertionError("asked although the call had returned")


def nothing() -> None:
    raise AssertionError("left although the call had returned")


def test_a_result_and_an_error_pass_through() -> None:
    assert patiently(lambda: 42, DEADLINE_S, never, nothing) == 42

    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        patiently(fail, DEADLINE_S, never, nothing)


def test_a_call_is_waited_for_as_long_as_it_is_worked_on() -> None:
    asked: list[int] = []
    go_on = threading.Event()

    def works() -> bool:
        asked.append(1)
        if len(asked) == 5:
            go_on.set()
        return True

    assert patiently(lambda: go_on.wait(DEADLINE_S), 0.01, works, nothing) is True
    assert len(asked) >= 5


def test_a_silent_call_is_left_behind_and_closed_when_it_returns() -> None:
    go_on, closed = threading.Event(), threading.Event()
    with pytest.raises(SilentError, match="no answer for"):
        patiently(lambda: go_on.wait(DEADLINE_S), 0.01, lambda: False, closed.set)
    assert not closed.is_set()
    go_on.set()
    assert closed.wait(DEADLINE_S)


class Answers:
    """What a server says about the session, one answer after the other; an exception is raised."""

    def __init__(self, *answers: Any):
        self._answers = list(answers)

    def __call__(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer] if answer else []


@pytest.mark.parametrize(
    ("answers", "works"),
    [
        ([()], [False]),  # the session is gone
        ([("active", "Lock", "t", 0)] * 4, [True] * 4),  # waits for a lock, however long
        ([("active", None, "t", 0)] * 4, [True] * 4),  # computes
        ([("idle", "Client", "t", 0)] * 2, [True, False]),  # has answered, and we haven't heard it
        ([("idle in transaction", "Client", "t", 0), ("active", None, "u", 0)], [True, True]),
        ([("idle", "Client", "t", 0), ("idle", "Client", "u", 0)], [True, True]),  # between two statements
        ([("active", "Client", "t", 10), ("active", "Client", "t", 20)], [True, True]),  # a slow COPY
        ([("active", "Client", "t", 10)] * 2, [True, False]),  # nobody reads what it sends
        ([OSError(), OSError()], [True, False]),  # the server can't be reached
        ([OSError(), ("active", None, "t", 0), OSError(), OSError()], [True, True, True, False]),
    ],
)
def test_what_a_session_does_says_whether_to_wait(answers: list[Any], works: list[bool]) -> None:
    watched = WatchedSession(Answers(*answers), (OSError,), lambda: (7, "then"))
    assert [watched.works() for _ in works] == works


def test_bytes_on_the_line_are_a_sign_of_life() -> None:
    carried = iter([{1: 10}, {1: 20}, {1: 20, 2: 5}, {2: 5}])
    idle = ("idle", "Client", "t", 0)
    watched = WatchedSession(
        Answers(idle, idle, idle), (OSError,), lambda: (7, "then"), lambda: next(carried)
    )
    # Bytes of a connection that wasn't there before say nothing.
    assert [watched.works() for _ in range(4)] == [True, True, True, False]


def test_the_bytes_that_a_connection_carried_are_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = Line("localhost", port)
        connect = socket.create_connection
        first = connect(("127.0.0.1", port))
        with (
            line.connected(lambda: connect(("127.0.0.1", port))) as client,
            first,
            server.accept()[0] as unused,
        ):
            other = server.accept()[0]
            assert len(carried_bytes("localhost", port)) == 2
            before = line.carried()
            assert len(before) == 1
            first.sendall(b"not mine")
            assert unused.recv(8) == b"not mine"
            client.sendall(b"12345")
            other.sendall(b"678")
            client.recv(3)
            deadline = time.monotonic() + DEADLINE_S
            while sum(line.carried().values()) < sum(before.values()) + 8:
                assert time.monotonic() < deadline
            assert sum(line.carried().values()) == sum(before.values()) + 8
            other.close()
        assert carried_bytes("127.0.0.1", port + 1) == {}


def test_a_session_that_is_not_known_yet_can_not_be_asked_for() -> None:
    watched = WatchedSession(Answers(), (OSError,), lambda: (0, ""))
    assert [watched.works(), watched.works()] == [True, False]


def test_a_thread_that_dies_at_birth_holds_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory for its first step a thread never says that it has begun."""
    monkeypatch.setattr(_thread, "start_new_thread", lambda work, arguments: 0)
    with pytest.raises(SilentError):
        patiently(lambda: 1, 0.01, lambda: False, lambda: None)


def test_no_room_for_another_thread_is_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(work: object, arguments: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refused)
    with pytest.raises(MemoryError, match="can't start new thread"):
        patiently(lambda: 1, 0.01, lambda: False, lambda: None)
