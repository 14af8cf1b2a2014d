"""The live page of a real run: it dumps, streams, takes a request, is behind with a frozen target, and ends."""

from __future__ import annotations

import json
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios.bench.orders.old_schema import OrderWriters, create
from scenarios.proxy.proxy import TcpProxy
from tests.integration import run_project
from tests.integration.observe.browser import chromium
from tests.integration.run_project import scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from tests.unit.test_report_schemas import validator

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ROWS = 300
PATIENCE_S = 180.0
HEAP = ("used", "committed", "limit")


@pytest.mark.parametrize("kind", ["mysql", "maria"])
def test_the_page_and_the_metrics_of_a_run_by_a_binary_log(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    old: Database = request.getfixturevalue(f"old_{kind}")
    new: Database = request.getfixturevalue(f"new_{kind}")
    create(scenario_database(old), ROWS)
    with TcpProxy(old.host, old.port, kind=old.kind) as source, chromium() as browser:
        project = run_project.make(tmp_path / "project", replace(old, port=source.port), new)
        address = free_address()
        url = f"http://{address}"
        writers = OrderWriters(scenario_database(old), ROWS, rate_per_s=20)
        process = project.process("run", "--plain", "--listen", address)

        def says(name: str, words: str) -> None:
            await_true(lambda: words in browser.text(name), f"{name}: {words}", PATIENCE_S, every_s=0.2)

        try:
            await_true(lambda: answers(url), "the address answers", PATIENCE_S, every_s=0.2)
            browser.open(url)
            says("phase", "streaming (leader)")
            assert "done, 300 rows" in browser.text("source-tables")
            writers.start()
            browser.await_js(
                "return document.querySelectorAll('#source-tables svg.spark').length > 0", "changes are drawn"
            )
            says("source-room", "of log for this")
            assert ("keeps log for" in browser.text("source-room")) == (kind == "mysql"), "MariaDB keeps all"
            assert '"gtid"' in browser.text("source-position")
            for name in ("live", "hour"):
                assert list(validator(name).iter_errors(document(f"{url}/{name}.json"))) == [], name
            found = metrics(url)
            assert found['migrator_position{migration="orders",of="applied",unit="transactions"}'] > 0
            assert found['migrator_source_log_kept_bytes{migration="orders"}'] >= 0
            assert ('migrator_source_log_expiry_seconds{migration="orders"}' in found) == (kind == "mysql")
            heap = [found[f'migrator_jvm_heap_bytes{{migration="orders",of="{of}"}}'] for of in HEAP]
            assert 0 < heap[0] <= heap[1] <= heap[2]
            source.refuse()
            says("what", "the source gives no answer")
            says("lag-age", "unknown")
            unknown = metrics(url)
            assert unknown['migrator_lag_known{migration="orders"}'] == 0
            assert 'migrator_lag_seconds{migration="orders"}' not in unknown
            source.heal()
            says("what", "nothing is wrong")
            writers.stop()
            says("lag-age", "caught up")
            assert browser.complaints() == []
        finally:
            writers.stop()
            process.kill()
            process.communicate()


def test_the_page_tells_what_a_real_run_does_while_it_does_it(
    tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    create(scenario_database(old_pg), ROWS)
    with TcpProxy(new_pg.host, new_pg.port, kind=new_pg.kind) as target, chromium() as browser:
        behind_proxy = replace(new_pg, host=target.host, port=target.port)
        project = run_project.make(tmp_path / "project", old_pg, behind_proxy)
        (project.config.parent / "control.token").write_text("may-do\n")
        address = free_address()
        observe = f'\n[observe]\nlisten = "{address}"\ncontrol_token_file = "control.token"\n'
        project.config.write_text(project.config.read_text() + observe)
        url = f"http://{address}"
        writers = OrderWriters(scenario_database(old_pg), ROWS, rate_per_s=20)
        process = project.process("run", "--plain")
        try:
            await_true(lambda: answers(url), "the address answers", PATIENCE_S, every_s=0.2)
            browser.open(url)
            await_true(
                lambda: browser.text("phase") == "streaming (leader)", "it streams", PATIENCE_S, every_s=0.2
            )
            assert "done, 300 rows" in browser.text("source-tables")
            writers.start()
            browser.await_js(
                "return document.querySelectorAll('#source-tables svg.spark').length > 0", "changes are drawn"
            )
            for name in ("live", "hour"):
                assert list(validator(name).iter_errors(document(f"{url}/{name}.json"))) == [], name
            browser.type("#control input[name=token]", "may-do")
            browser.type("#control input[name=reason]", "as a trial")
            browser.type("#start textarea", "orders")
            browser.click("#start button")
            browser.click("#sure button")
            browser.await_text("requests-answer", "Done: started r1 running orders")
            await_true(
                lambda: "r1 done" in browser.text("requests-list"), "r1 is done", PATIENCE_S, every_s=0.2
            )
            target.refuse()
            await_true(
                lambda: "the target gives no answer" in browser.text("what"),
                "it says so",
                PATIENCE_S,
                every_s=0.2,
            )
            assert browser.text("level") == "ACT NOW"
            assert browser.text("remedy").startswith("start the target or mend the way to it")
            target.heal()
            await_true(
                lambda: "nothing is wrong" in browser.text("what"), "it is over", PATIENCE_S, every_s=0.2
            )
            assert [line for line in browser.asked_for() if not line.startswith(f"{url}/")] == []
            assert browser.complaints() == []
        finally:
            writers.stop()
            process.kill()
            process.communicate()
        browser.await_text("stale", "STALE")
        (act,) = [
            row
            for row in new_pg.query("SELECT act, reason, detail FROM migrator.history")
            if row[0] == "dump start"
        ]
        assert act[1] == "as a trial"
        assert str(act[2]).endswith("(on the live page, from 127.0.0.1)")


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def metrics(url: str) -> dict[str, float]:
    """What ``/metrics`` tells: each series with its value."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    told = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {series: float(value) for series, _, value in told}


def answers(url: str) -> bool:
    """Tells whether something is there."""
    try:
        return bool(document(f"{url}/live.json"))
    except OSError:
        return False


def document(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
