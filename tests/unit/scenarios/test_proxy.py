"""The proxy against a server that echoes: every control does what it says, and stops when it is healed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from migrator.errors import ConfigError, MigratorError
from scenarios.proxy.proxy import TcpProxy
from scenarios.proxy.wire import MariaScanner, PostgresScanner

TIMEOUT_S = 5.0
SHORT_S = 0.3


class EchoServer:
    """Sends back what it gets, with a prefix, and keeps what it got."""

    def __init__(self, prefix: bytes = b""):
        self.prefix = prefix
        self.received = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while data := connection.recv(65536):
                self.received += data
                connection.sendall(self.prefix + data)


@pytest.fixture
def echo() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.close()


@pytest.fixture
def proxy(echo: EchoServer) -> Iterator[TcpProxy]:
    with TcpProxy(echo.host, echo.port, kind="postgresql", seed=7) as running:
        yield running


def connected(proxy: TcpProxy, timeout_s: float = TIMEOUT_S) -> socket.socket:
    return socket.create_connection((proxy.host, proxy.port), timeout=timeout_s)


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := client.recv(size - len(data))):
        data += piece
    return data


def exchanged(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return received(client, len(data))


def test_what_is_sent_arrives_unchanged_and_in_order(proxy: TcpProxy, echo: EchoServer) -> None:
    data = bytes(range(256)) * 4000  # larger than one piece
    answered: list[bytes] = []
    with connected(proxy) as client:
        reader = threading.Thread(target=lambda: answered.append(received(client, len(data))))
        reader.start()
        client.sendall(data)
        reader.join(TIMEOUT_S)
    assert answered == [data]


def test_the_end_of_either_side_reaches_the_other(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        exchanged(client, b"x")
        client.shutdown(socket.SHUT_WR)  # the echo server then closes its side
        assert client.recv(1) == b""


def test_refuse_cuts_and_refuses_until_healed(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        exchanged(client, b"x")
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    port = proxy.port
    with pytest.raises(ConnectionRefusedError):
        connected(proxy)
    proxy.heal()
    assert proxy.port == port
    with connected(proxy) as client:
        assert exchanged(client, b"again") == b"again"


def test_latency_delays_and_jitter_is_the_seeds(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        exchanged(client, b"x")
        proxy.latency(0.1, 0.05)
        began = time.monotonic()
        assert exchanged(client, b"y") == b"y"
        assert time.monotonic() - began >= 0.2  # there and back
        proxy.heal()
        began = time.monotonic()
        exchanged(client, b"z")
        assert time.monotonic() - began < 0.2


def test_throttle_limits_the_rate(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        exchanged(client, b"x")
        proxy.throttle(10_000)
        began = time.monotonic()
        exchanged(client, b"y" * 3_000)
        assert time.monotonic() - began >= 0.25


def test_half_open_keeps_the_sockets_and_forwards_nothing_for_good(proxy: TcpProxy, echo: EchoServer) -> None:
    with connected(proxy, SHORT_S) as client:
        exchanged(client, b"x")
        assert proxy.half_open() == 1
        client.sendall(b"lost")
        with pytest.raises(TimeoutError):
            client.recv(1)
        with connected(proxy, SHORT_S) as late:  # accepted, but it leads nowhere
            late.sendall(b"y")
            with pytest.raises(TimeoutError):
                late.recv(1)
            proxy.heal()
            assert late.recv(1) == b"y"
        with pytest.raises(TimeoutError):  # the old connection is dead for good
            client.recv(1)
    assert b"lost" not in echo.received


def test_a_stalled_connection_goes_on_after_it_healed(proxy: TcpProxy) -> None:
    with connected(proxy, SHORT_S) as client:
        exchanged(client, b"x")
        proxy.half_open(for_good=False)
        client.sendall(b"late")
        with pytest.raises(TimeoutError):
            client.recv(1)
        proxy.heal()
        assert received(client, 4) == b"late"


def test_one_way_blocks_one_direction(proxy: TcpProxy, echo: EchoServer) -> None:
    with connected(proxy, SHORT_S) as client:
        exchanged(client, b"x")
        proxy.one_way("to_client")
        client.sendall(b"heard")
        with pytest.raises(TimeoutError):
            client.recv(1)
        assert bytes(echo.received) == b"xheard"
        proxy.heal()
        assert received(client, 5) == b"heard"


@pytest.mark.parametrize("direction", ["to_server", "to_client"])
def test_reset_after_exactly_so_many_bytes(proxy: TcpProxy, echo: EchoServer, direction: str) -> None:
    with connected(proxy) as client:
        exchanged(client, b"abc")
        trigger = proxy.reset_after(5, direction)  # type: ignore[arg-type]
        assert exchanged(client, b"123") == b"123"
        assert not trigger.fired
        with suppress(ConnectionResetError):
            exchanged(client, b"456789")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(b"x")
    assert trigger.fired
    if direction == "to_client":
        assert bytes(echo.received) == b"abc123456789"
    else:  # a reset also takes what its receiver has not read yet: never a byte more than asked, maybe fewer
        assert b"abc12345".startswith(bytes(echo.received))
        assert bytes(echo.received).startswith(b"abc123")
    with connected(proxy) as client:  # one shot
        assert exchanged(client, b"0123456789") == b"0123456789"


def test_slices_arrive_whole(proxy: TcpProxy) -> None:
    proxy.slices(1)
    with connected(proxy) as client:
        assert exchanged(client, b"one by one") == b"one by one"
        assert client.getsockname()


def test_flip_changes_one_bit_of_one_byte_once(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        exchanged(client, b"before")
        trigger = proxy.flip_byte(2)
        assert exchanged(client, b"a") == b"a"
        assert exchanged(client, b"bcdef") == b"bbdef"  # c is 0x63
        assert trigger.fired
        assert exchanged(client, b"abc") == b"abc"


def test_switching_leads_new_connections_elsewhere_and_cuts_the_present(proxy: TcpProxy) -> None:
    other = EchoServer(prefix=b">")
    with connected(proxy) as client:
        exchanged(client, b"x")
        proxy.switch_upstream(other.host, other.port)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with connected(proxy) as client:
        client.sendall(b"y")
        assert received(client, 2) == b">y"
    other.close()


def test_a_server_that_is_gone_resets_the_client(proxy: TcpProxy, echo: EchoServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy.switch_upstream("127.0.0.1", port)
    with pytest.raises(ConnectionResetError):
        connected(proxy).recv(1)


@pytest.mark.parametrize(
    "control",
    [
        lambda proxy: proxy.latency(-1),
        lambda proxy: proxy.throttle(0),
        lambda proxy: proxy.slices(0),
        lambda proxy: proxy.reset_after(0, "to_server"),
        lambda proxy: proxy.flip_byte(-1),
        lambda proxy: proxy.reset_around_commit("before", 0),
    ],
)
def test_a_control_without_effect_is_refused(proxy: TcpProxy, control: object) -> None:
    with pytest.raises(ConfigError):
        control(proxy)  # type: ignore[operator]


def test_a_proxy_that_does_not_run_says_so(echo: EchoServer) -> None:
    with pytest.raises(MigratorError, match="isn't running"):
        TcpProxy(echo.host, echo.port).cut()
    with TcpProxy(echo.host, echo.port) as proxy, pytest.raises(ConfigError, match="protocol"):
        proxy.reset_around_commit("before")


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def startup(**options: str) -> bytes:
    words = b"".join(f"{name}\0{value}\0".encode() for name, value in options.items()) + b"\0"
    return (len(words) + 8).to_bytes(4, "big") + (196608).to_bytes(4, "big") + words


PARSE = message(b"P", b"s1\0COMMIT\0\0\0")
OTHER = message(b"P", b"s2\0SELECT 'COMMIT'\0\0\0") + message(b"d", b"Q\0\0\0\x0bCOMMIT\0" * 20)
EXECUTE = message(b"B", b"\0s1\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0")
SYNC = message(b"S", b"")
SIMPLE = message(b"Q", b"commit;\0")


@pytest.mark.parametrize("cut", [1, 2, 7, 4096])
def test_commits_are_found_however_the_stream_is_cut(cut: int) -> None:
    scanner = PostgresScanner()
    tls_request = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
    stream = tls_request + startup(user="u") + OTHER + PARSE + SYNC + EXECUTE + SYNC + OTHER + SIMPLE + SYNC
    ends = []
    for at in range(0, len(stream), cut):
        for commit in scanner.feed(stream[at : at + cut]):
            assert 0 <= commit.begin < commit.end <= cut
            ends.append(at + commit.end)
    first = stream.index(EXECUTE) + len(EXECUTE)
    assert ends == [first, stream.index(SIMPLE) + len(SIMPLE)]
    assert not scanner.is_log


def test_the_place_of_a_commit_is_that_of_its_message() -> None:
    scanner = PostgresScanner()
    scanner.feed(startup(user="u"))
    data = OTHER + SIMPLE + SYNC
    (commit,) = scanner.feed(data)
    assert data[commit.begin : commit.end] == SIMPLE
    assert scanner.feed(SIMPLE[:9]) == []
    (commit,) = scanner.feed(SIMPLE[9:])
    assert (commit.begin, commit.end) == (0, len(SIMPLE) - 9)


def test_a_replication_connection_is_known_and_tls_is_never_read() -> None:
    scanner = PostgresScanner()
    scanner.feed(startup(user="u", replication="database"))
    assert scanner.is_log
    encrypted = PostgresScanner()
    assert encrypted.feed(b"\x16\x03\x01\x00\x05hello" + SIMPLE) == []
    assert encrypted.feed(SIMPLE) == []


def packet(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes((number,)) + body


@pytest.mark.parametrize("cut", [1, 3, 4096])
def test_mariadb_commands_are_found_however_the_stream_is_cut(cut: int) -> None:
    scanner = MariaScanner()
    login = packet(1, b"\x85\xa6\xff\x01" + b"\0" * 28 + b"root\0")
    long = packet(0, b"\x03INSERT INTO t VALUES ('" + packet(0, b"\x03COMMIT") * 30 + b"')")
    commit = packet(0, b"\x03COMMIT")
    stream = login + long + packet(1, b"\x03COMMIT") + commit + packet(0, b"\x12" + b"\0" * 10) + commit
    ends = []
    for at in range(0, len(stream), cut):
        ends += [at + found.end for found in scanner.feed(stream[at : at + cut])]
    assert ends == [stream.index(commit, len(login + long) + len(commit)) + len(commit), len(stream)]
    assert scanner.is_log
