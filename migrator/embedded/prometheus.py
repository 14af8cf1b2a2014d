"""Prometheus and promtool from Debian's package (``migrator.embedded.debian``), for alerts and dashboards."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Sequence
from pathlib import Path

from migrator.embedded.debian import DebianServer, linked
from migrator.embedded.process import (
    Program,
    ServerProcess,
    make_server_directory,
    plain_environment,
    unprivileged_user,
)
from migrator.embedded.server import EmbeddedServer

PROMETHEUS = DebianServer("Prometheus", "prometheus", "prometheus", ("bookworm",), "usr/bin/prometheus")
_PROMTOOL = "usr/bin/promtool"


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs promtool; its words are in ``stdout``. Raises ``PackagesUnavailable`` if it can't be had here."""
    root = PROMETHEUS.install()
    return subprocess.run(
        [*linked(root), str(root / _PROMTOOL), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        env=plain_environment(),
    )


class EmbeddedPrometheus(EmbeddedServer):
    """A Prometheus under ``directory`` that scrapes every second; a context manager.

    Args:
        directory: gets its configuration, its data and its log.
        targets: ``host:port`` of what is scraped.
        rules: files of alert rules.
        every_s: time between two scrapes, and between two evaluations.

    Raises ``PackagesUnavailable`` if it can't be had here, MigratorError if it doesn't start.
    """

    title = "the embedded Prometheus"

    def __init__(self, directory: Path, targets: Sequence[str], rules: Sequence[Path] = (), every_s: int = 1):
        super().__init__(directory)
        self._targets, self._rules, self._every_s = targets, rules, every_s
        self._program = PROMETHEUS.install()

    def _create(self) -> ServerProcess:
        user = unprivileged_user("nobody")
        root = make_server_directory(self._directory, user)
        copies = [root / rules.name for rules in self._rules]
        for copy, rules in zip(copies, self._rules, strict=True):
            copy.write_text(rules.read_text("utf-8"), "utf-8")
        configuration = root / "prometheus.yml"
        configuration.write_text(
            f"global: {{scrape_interval: {self._every_s}s, evaluation_interval: {self._every_s}s}}\n"
            f"rule_files: [{', '.join(map(str, copies))}]\n"
            "scrape_configs:\n"
            "  - job_name: migrator\n"
            f"    static_configs: [{{targets: [{', '.join(repr(one) for one in self._targets)}]}}]\n"
        )
        command = [
            *linked(self._program),
            str(self._program / PROMETHEUS.program),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={make_server_directory(root / 'data', user)}",
            f"--web.listen-address={self.host}:{self.port}",
        ]
        return ServerProcess(
            self.title,
            Program(command, user=user, directory=root, log=root / "prometheus.log"),
            ready=lambda: _why_not_ready(self.host, self.port),
        )


def _why_not_ready(host: str, port: int) -> str:
    """Returns why it isn't ready; empty where it is."""
    connection = http.client.HTTPConnection(host, port, timeout=3)
    try:
        connection.request("GET", "/-/ready")
        status = connection.getresponse().status
        return "" if status == http.client.OK else f"it answers {status}"
    except OSError as error:
        return str(error)
    finally:
        connection.close()
