"""A live page over HTTP, whose run is whatever a test says, in memory: no server of a database, no Spark."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from migrator.adapters.observers.live_page import LivePage
from migrator.adapters.observers.server import ObserverServer
from migrator.cli.run.run import document
from migrator.core.watched.verdict import troubles, verdict
from migrator.errors import MigratorError
from migrator.model.cutover.record import Record
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.listening import Listening
from migrator.model.observed.live import Live
from migrator.model.observed.observation import Observation
from migrator.model.progress import TableDump
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.table import TableId
from migrator.ports.requests import RequestStore
from migrator.run.commands.asked import Desk
from tests.unit.observers.troubles import WELL
from verify.report.page import style

HERE = Listening("127.0.0.1", 0)
CONTROL = replace(HERE, control="may-do")
BOUNDS = Bounds()


class Books:
    """A ``RequestStore`` in memory."""

    def __init__(self) -> None:
        self.book = RequestBook()

    def read(self) -> RequestBook:
        return self.book

    def update(self, change: Any) -> RequestBook:
        self.book = change(self.book)
        return self.book


class Run:
    """What the page is told of: ``seen`` and ``hour`` are a test's to change; what is asked for goes to ``books``."""

    def __init__(self, seen: Observation = WELL, hour: Hour | None = None):
        self.seen, self.hour = seen, hour or Hour()
        self.targets: tuple[str, ...] = ()
        self.requests: tuple[TableDump, ...] = ()
        self.cutover: Record | None = None
        self.books = Books()
        self.acts: list[tuple[str, str, str]] = []
        self.unkept: MigratorError | None = None
        self.desk = Desk(lambda: self._store(), self._start, self._keep)

    def _store(self) -> RequestStore:
        return self.books

    def _start(self, tables: tuple[str, ...]) -> RequestBook:
        named = tuple(TableId("shop", name) for name in tables or ("orders", "customer"))
        return self.books.update(lambda book: book.start(named, WHOLE))

    def _keep(self, act: str, reason: str, detail: str) -> None:
        if self.unkept is not None:
            raise self.unkept
        self.acts.append((act, reason, detail))

    def live(self) -> Live:
        found = troubles(self.seen, self.hour, BOUNDS)
        return Live(
            self.seen, self.hour, verdict(self.seen, self.hour, found), found,
            self.targets, self.books.book, self.requests, self.cutover,
        )  # fmt: skip


class Browsed:
    """The address of a run's page, asked without a browser."""

    def __init__(self, run: Run, listening: Listening = HERE):
        self.run = run
        page = LivePage(style(), lambda: run.live(), lambda asked: run.desk(asked), document)
        self.server = ObserverServer(listening, lambda: run.seen, page)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def get(self, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        return self.asked("GET", path, None, headers)

    def post(self, document: object, token: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
        """Posts a request; ``document`` may be bytes that are none."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        every = {"Content-Type": "application/json", **headers}
        every |= {"Authorization": f"Bearer {token}"} if token else {}
        status, _, text = self.asked("POST", "/requests", body, every)
        found: dict[str, Any] = json.loads(text)
        return status, found

    def asked(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()


@contextmanager
def browsed(run: Run, listening: Listening = HERE) -> Iterator[Browsed]:
    found = Browsed(run, listening)
    with found.server:
        yield found
