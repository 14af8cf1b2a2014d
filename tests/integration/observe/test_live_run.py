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


def test_the_page_tells_what_a_real_run_does_while_it_does_it(
    tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    create(scenario_database(old_pg), ROWS)
    with TcpProxy(new_pg.host, new_pg.port, kind=new_pg.kind) as target, chromium() as browser:
        behind_proxy = replace(new_pg, host=target.host, port=target.port)
        project = run_project.make(tmp_path / "project", old_pg, behind_proxy)
        (project.config.parent / "control.token").write_text("may-do\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
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


def answers(url: str) -> bool:
    """Tells whether something is there."""
    try:
        return bool(document(f"{url}/live.json"))
    except OSError:
        return False


def document(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
