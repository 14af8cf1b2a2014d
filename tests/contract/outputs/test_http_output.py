"""The output to an API keeps the contract; a consumer that drops known keys has each event once, over any kill."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from migrator.adapters.outputs.http_api.api import Api, Endpoint
from migrator.adapters.outputs.http_api.output import Bounds, HttpOutput, Sender
from migrator.adapters.outputs.http_api.refusal import Request
from migrator.adapters.outputs.http_api.spool import Batch, Spool
from migrator.adapters.outputs.json_lines.lines import numbered
from migrator.ports.output import EventOutput
from tests.contract.outputs.api_server import ApiServer, Inbox
from tests.contract.outputs.json_events import json_event
from tests.contract.outputs.killed_history import Killer, append, history, life, rebuilt, undisturbed
from tests.contract.outputs.output_content import Event
from tests.contract.outputs.output_contract import OutputContract, OutputUnderTest


def never(_: float) -> bool:
    raise AssertionError("nothing is waited for")


class Http:
    """An API, and the output to it."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        self.url, self.inbox = server.inbox()
        self._path = directory / "out.batch"
        self.inbox.spool = self._path
        self._start = 0

    def output(self) -> EventOutput:
        self._start = len(self.inbox.batches)
        api = Api(Endpoint(self.url), never)
        return HttpOutput(Request(self.url, "", 0), api, Spool(self._path), numbered, Bounds(events=700))

    def events(self) -> list[Event]:
        for one in self.inbox.batches:
            assert one.kept.endswith(b"\n" + one.body), "sent before it was kept"
        assert self.inbox.changed == [], "other bytes under a known key"
        return [json_event(line) for line in self.inbox.lines()]

    def size(self) -> int:
        return sum(len(one.body) for one in self.inbox.batches[self._start :])

    def tear(self, cut: int) -> None:
        """Killed while it sent: a batch that didn't come whole wasn't taken, and is the one that is kept."""
        while cut > 0:
            torn = self.inbox.batches.pop()
            self._path.write_bytes(torn.kept)
            cut -= len(torn.body)


class TestHttp(OutputContract):
    server: ClassVar[ApiServer]

    @classmethod
    def setup_class(cls) -> None:
        cls.server = ApiServer()

    @classmethod
    def teardown_class(cls) -> None:
        cls.server.close()

    def make(self, directory: Path) -> OutputUnderTest:
        return Http(self.server, directory)


class KilledSpool(Spool):
    killer: Killer

    def write(self, batch: Batch) -> None:
        self.killer.step("before a batch is kept")
        super().write(batch)
        self.killer.step("after a batch is kept")


class KilledApi:
    """Sends, and is killed before or behind it: the API has it then, and nobody knows."""

    def __init__(self, api: Sender, killer: Killer) -> None:
        self._api, self._killer = api, killer

    def send(self, request: Request, body: bytes, headers: Mapping[str, str]) -> None:
        self._killer.step("before a batch is sent")
        self._api.send(request, body, headers)
        self._killer.step("after a batch was taken")

    def close(self) -> None:
        self._api.close()


class WithoutKey(KilledApi):
    """The broken variant: each request has a key of its own."""

    def send(self, request: Request, body: bytes, headers: Mapping[str, str]) -> None:
        super().send(request, body, {**headers, "Idempotency-Key": secrets.token_hex(8)})


def played(
    server: ApiServer, folder: Path, seed: int, sender: type[KilledApi] = KilledApi
) -> tuple[bool, bool, list[str]]:
    """Whether the consumer has the table, whether it has each event once, and where the process was killed."""
    choice = random.Random(seed)
    contents, rows = history(seed)
    append(folder / "log", contents)
    url, inbox = server.inbox()
    killer = Killer(choice)
    for _ in range(100):
        spool = KilledSpool(folder / "out.batch")
        spool.killer = killer
        api = sender(Api(Endpoint(url), never), killer)
        bounds = Bounds(choice.randrange(1, 6), choice.choice([200, 100_000]))
        output = HttpOutput(Request(url, "", 0), api, spool, numbered, bounds)
        ended = life(folder / "log", output, killer, choice.choice([0.0001, 60.0]))
        api.close()  # the end of a process closes its sockets
        if ended:
            found = [json_event(line) for line in inbox.lines()]
            return rebuilt(found) == rows, found == undisturbed(folder / "log"), killer.at
    raise AssertionError("it never came to its end")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    running = ApiServer()
    yield running
    running.close()


def test_killed_anywhere_a_consumer_that_drops_known_keys_has_each_event_once(
    server: ApiServer, tmp_path: Path
) -> None:
    killed: set[str] = set()
    for seed in range(10):
        folder = tmp_path / str(seed)
        same, once, at = played(server, folder, seed)
        assert (same, once) == (True, True), f"seed {seed}, killed {at}"
        killed |= set(at)
    assert len(killed) == 6, "a step at which nobody was killed proves nothing"


def test_without_a_stable_key_events_come_twice(server: ApiServer, tmp_path: Path) -> None:
    found = [played(server, tmp_path / str(seed), seed, WithoutKey)[1] for seed in range(5)]
    assert found.count(False) >= 2


def test_an_api_that_ignores_keys_is_one_that_gets_events_twice(server: ApiServer, tmp_path: Path) -> None:
    """What is promised holds with keys alone: the docs say so."""
    url, inbox = server.inbox()
    inbox.by_key = False
    assert Inbox().by_key
    spool, request = Spool(tmp_path / "out.batch"), Request(url, "", 0)
    spool.write(Batch("s", 1, (0, 0), (1, 0), 1, b"{}\n"))
    for _ in range(2):
        output = HttpOutput(request, Api(Endpoint(url), never), spool, numbered, Bounds())
        held = output.open(0)
        assert held is not None
        assert (held.segment, held.number) == (1, 0)
        output.close()
    assert [one.key for one in inbox.batches] == [Batch("s", 1, (0, 0), (1, 0), 1, b"{}\n").key()] * 2
