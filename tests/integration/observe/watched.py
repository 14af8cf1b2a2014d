"""A real run that a real Prometheus scrapes, whose alerts come within seconds; its page is looked at as well."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.prometheus import EmbeddedPrometheus
from scenarios.proxy.proxy import TcpProxy
from tests.integration import run_project
from tests.integration.run_project import Project
from tests.integration.waiting import await_true
from tests.servers import Database
from tests.unit.observers.test_alerts import RULES

PATIENCE_S = 180.0


def hurried(folder: Path) -> Path:
    """The alerts with minutes as seconds, and a lag of five seconds as one of a minute."""
    rules = re.sub(r"\b(\d+)m\b", r"\1s", RULES.read_text("utf-8")).replace("for: 30s", "for: 3s")
    file = folder / "alerts.yml"
    rules = re.sub(r"\[[125]s\]", "[10s]", rules).replace("_seconds > 60", "_seconds > 5")
    standing_by = 'migrator_phase{phase="standing by"}'
    file.write_text(rules.replace(f"{standing_by}[10s]", f"{standing_by}[2m]"), "utf-8")
    return file


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


class Watched:
    """A run, and the Prometheus that scrapes it."""

    def __init__(self, project: Project, folder: Path, processes: int = 1):
        self._project = project
        self.addresses = [free_address() for _ in range(processes)]
        try:
            self.prometheus = EmbeddedPrometheus(folder / "prometheus", self.addresses, [hurried(folder)])
        except PackagesUnavailable as error:
            pytest.skip(f"no Prometheus: {error}")

    @contextmanager
    def running(self, *options: str, which: int = 0) -> Iterator[subprocess.Popen[str]]:
        process = self._project.process("run", "--plain", "--listen", self.addresses[which], *options)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def asked(self, question: str) -> list[dict[str, Any]]:
        """The answer to an instant query."""
        where = f"http://{self.prometheus.host}:{self.prometheus.port}/api/v1/query"
        with urllib.request.urlopen(f"{where}?{urllib.parse.urlencode({'query': question})}") as answer:
            document = json.load(answer)
        assert document["status"] == "success", question
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    def has(self, question: str) -> bool:
        return bool(self.asked(question))

    def firing(self, alert: str) -> bool:
        return self.has(f'ALERTS{{alertname="{alert}",alertstate="firing"}}')

    def await_alert(self, alert: str, fires: bool = True) -> None:
        what = f"{alert} {'fires' if fires else 'is over'}"
        await_true(lambda: self.firing(alert) is fires, what, PATIENCE_S, every_s=0.5)

    def await_told(self, alert: str, which: int = 0) -> None:
        """Waits until a trouble has its alert, and the page of a process tells it as well, in all its parts."""
        self.await_alert(alert)
        name = alert.removeprefix("Migrator")

        def on_the_page() -> bool:
            with urllib.request.urlopen(f"http://{self.addresses[which]}/live.json", timeout=10) as answer:
                troubles = json.load(answer)["troubles"]
            found = [one for one in troubles if one["name"] == name]
            return bool(found) and all(found[0][part] for part in ("what", "risk", "remedy", "document"))

        await_true(on_the_page, f"the page tells {name}", PATIENCE_S, every_s=0.5)

    def await_value(self, question: str, value: float) -> None:
        def holds() -> bool:
            return any(float(one["value"][1]) == value for one in self.asked(question))

        await_true(holds, f"{question} is {value:g}", PATIENCE_S, every_s=0.5)


@contextmanager
def between(tmp_path: Path, old: Database, new: Database) -> Iterator[tuple[Project, TcpProxy, TcpProxy]]:
    """A project whose servers are behind proxies."""
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(TcpProxy(side.host, side.port, kind=side.kind)) for side in (old, new)
        )
        ends = (
            replace(old, host=source.host, port=source.port),
            replace(new, host=target.host, port=target.port),
        )
        yield run_project.make(tmp_path / "project", *ends), source, target


def troubled(
    begin: Callable[[], object],
    end: Callable[[], object],
    watched: Watched,
    alert: str,
    lag_known: int = 1,
) -> None:
    """Seeds a trouble, waits for its alert, and ends it again."""
    assert not watched.firing(alert)
    begin()
    watched.await_told(alert)
    watched.await_value("migrator_lag_known", lag_known)
    end()
    watched.await_alert(alert, fires=False)


def children(process: int, name: str) -> list[int]:
    """Processes of that name which a process started."""
    found = [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return [child for child in found if Path(f"/proc/{child}/comm").read_text().strip() == name]
