"""``migrator events`` to an API beside a real capture under writers, its process killed at each step of a batch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.commands.test_events import (
    ROWS,
    SMALL,
    await_,
    capturing,
    newest,
    replayed,
    source_rows,
)
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STEPS = ("connected", "headed", "read", "taken", "half answered", "answered")
"""Where the API kills its client: what was kept isn't sent yet, is sent in part, as a whole, is taken, and so on."""
ROUNDS, PASSED = 2, 2
"""How often each step has its turn; batches that are taken in peace between two kills."""


class KillingApi(ThreadingHTTPServer):
    """Keeps each batch once by its key, and kills who sends it, at one step after the other, while ``kills`` last."""

    daemon_threads = True

    def __init__(self, kills: list[str]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kills, self.killed, self._next_at = kills, list[str](), 0
        self.batches: dict[str, bytes] = {}
        self.again: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()

    def step(self, name: str) -> None:
        """Kills the client here if it is its turn. One that was killed sends nothing more, so it is its turn once."""
        with self.lock:
            if not self.kills or self.kills[0] != name or self.process is None:
                return
            if name != STEPS[0] and len(self.batches) < self._next_at:
                return
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
            self.killed.append(self.kills.pop(0))
            self._next_at = len(self.batches) + PASSED

    def take(self, key: str, body: bytes) -> None:
        with self.lock:
            if key in self.batches:
                self.again.append(key)
            assert self.batches.setdefault(key, body) == body, "other bytes under a known key"

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for body in self.batches.values() for line in body.splitlines()]


class _Handler(BaseHTTPRequestHandler):
    server: KillingApi
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.server.step("connected")
        super().setup()

    def handle(self) -> None:
        with suppress(ConnectionError):  # of a client that was killed
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_POST(self) -> None:
        self.server.step("headed")
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # torn: nothing of it is taken
        self.server.step("read")
        self.server.take(self.headers["Idempotency-Key"], body)
        self.server.step("taken")
        said = b'{"accepted": %d}' % body.count(b"\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        self.wfile.write(head.encode() + said[:5])
        self.server.step("half answered")
        self.wfile.write(said[5:])
        self.server.step("answered")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def api(kills: list[str]) -> Iterator[KillingApi]:
    server = KillingApi(kills)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("kind", ["pg", "maria", "mysql"])
def test_killed_at_each_step_of_a_batch_a_consumer_rebuilds_the_table(
    kind: str, tmp_path: Path, new_pg: Database, request: pytest.FixtureRequest
) -> None:
    old: Database = request.getfixturevalue(f"old_{kind}")
    create(scenario_database(old), ROWS)
    project = run_project.make(tmp_path / "project", old, new_pg)
    project.config.write_text(project.config.read_text() + SMALL)
    writers = OrderWriters(scenario_database(old), ROWS, rate_per_s=50)
    writers.start()
    with api(list(STEPS) * ROUNDS) as server, capturing(project) as capture:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        options = ["--format", "http", "--output", url, "--batch-events", "100"]
        command = [sys.executable, "-m", "migrator", "events", *options, "--config", str(project.config)]
        while server.kills:
            server.process = subprocess.Popen([*command, "--follow"], stderr=subprocess.DEVNULL)
            await_(lambda: server.process is None)
        await_(capture.caught_up())
        assert writers.stop().row_changes > 0
        await_(capture.caught_up())
        assert newest(capture.log) > 1
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert server.killed == list(STEPS) * ROUNDS
    assert server.again, "a batch that was taken unknown to its sender came again, and was told by its key"
    events = server.events()
    places = [(event["source"]["segment"], event["source"]["number"]) for event in events]
    assert places == sorted(set(places)), "an event came twice or out of order"
    assert {"r", "c", "u"} <= {event["op"] for event in events}
    expected = source_rows(old)
    assert len(expected) > 1000
    assert replayed(events) == expected
