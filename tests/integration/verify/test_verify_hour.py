"""An hour's writes on hot rows, captured and applied by a run of its own and judged chunk by chunk all the while.

Every chunk holds rows that never rest. No verification may call one of them different; a bit that is flipped at the
end, in a row beside them, must be found and named while they go on changing.

``MIGRATOR_STRESS_CHANGES`` says how many row changes; ``make stress`` asks for an hour's at a thousand a second.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

CHANGES = int(os.environ.get("MIGRATOR_STRESS_CHANGES", "0"))
ENOUGH = CHANGES or 4000
ROWS = 100_000 if CHANGES else 2000
CHUNK_ROWS = 100
HOT_EVERY = 20
"""One row in so many is written to: five of each chunk."""
CALM = HOT_EVERY * (ROWS // HOT_EVERY // 2) + 1
AHEAD = 200 if CHANGES else 10
"""Transactions that the writer may be ahead of the target: two cores run the judge, the run and the servers."""
DEADLINE_S = 240.0


class Writer:
    """Transactions of fifty hot rows, one come and one gone; row 1 counts them."""

    def __init__(self, project: Project):
        self._project, self._random = project, random.Random(1)
        self._ended = threading.Event()
        self.transactions = self.changes = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Writes until the block ends; what went wrong is raised there."""
        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(self._write)
            try:
                yield
            finally:
                self._ended.set()
                working.result(DEADLINE_S)

    def _write(self) -> None:
        with closing(self._project.old.connect(autocommit=False)) as old:
            while not self._ended.is_set():
                with old.cursor() as cursor:
                    self._transaction(cursor)
                old.commit()
                if self.transactions % 20 == 0:
                    self._let_the_target_follow()

    def _transaction(self, cursor: Any) -> None:
        self.transactions += 1
        hot = self._random.sample(range(HOT_EVERY, ROWS + 1, HOT_EVERY), 50)
        changed = f"items = items + 1, total = total + 0.01, comment = 'hot {self.transactions}'"
        cursor.execute(f"UPDATE orders SET {changed} WHERE id IN ({', '.join(map(str, hot))})")
        self.changes += cursor.rowcount
        cursor.execute(f"UPDATE orders SET customer = {self.transactions} WHERE id = 1")
        copied = "customer, items, state, comment, total, rebate, created, paid, source"
        cursor.execute(
            f"INSERT INTO orders SELECT {ROWS + self.transactions}, {copied} FROM orders WHERE id = 2"
        )
        cursor.execute(f"DELETE FROM orders WHERE id = {ROWS + self.transactions - 30}")
        self.changes += 3

    def _let_the_target_follow(self) -> None:
        at = "SELECT customer_id FROM purchase WHERE purchase_id = 1"
        while not self._ended.is_set() and self.transactions - self._project.new.query(at)[0][0] > AHEAD:
            self._ended.wait(0.05)


def verified(project: Project, rounds: int) -> dict[str, Any]:
    """The one table's part of the report of a verification in small chunks, and the verdict."""
    code = project.command("verify", "--chunk-rows", str(CHUNK_ROWS), "--max-rounds", str(rounds))
    report = json.loads((configuration.load(project.config).reports() / "verify.json").read_text())
    assert report["exit_code"] == code
    (table,) = report["tables"]
    return {"verdict": report["verdict"], **table}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["old_pg", "old_maria", "old_mysql"] if CHANGES else ["old_pg"])
def test_an_hour_of_hot_writes_is_no_alarm_and_hides_no_bit(
    source: str, new_pg: Database, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    old: Database = request.getfixturevalue(source)
    create(scenario_database(old), ROWS)
    project = run_project.make(request.getfixturevalue("tmp_path") / "project", old, new_pg)
    process = project.process("run", "--plain")
    try:
        count = "SELECT count(*) FROM purchase"
        await_true(lambda: project.new.query(count)[0][0] == ROWS, "dumped", DEADLINE_S)
        writer, verifications, chunks = Writer(project), 0, 0
        with writer.writing():
            while writer.changes < ENOUGH:
                table = verified(project, 20 if CHANGES else 3)
                counts = table["counts"]
                assert (table["verdict"] != "different", counts["different"], counts["missing"], counts["extra"]) == (
                    True, 0, 0, 0,
                )  # fmt: skip
                verifications, chunks = verifications + 1, chunks + ROWS // CHUNK_ROWS
                print(f"{writer.changes} changes, {chunks} chunks in {verifications} verifications: {counts}")
            project.new.execute(
                f"UPDATE purchase SET amount_cents = amount_cents # 1 WHERE purchase_id = {CALM}"
            )
            found = verified(project, 20)
            assert (found["verdict"], found["counts"]["different"]) == ("different", 1), found["counts"]
            assert writer.transactions > verifications, "nothing was written meanwhile"
        named = (configuration.load(project.config).reports() / "verify-keys.jsonl").read_text()
        assert f'"{CALM}"' in named
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
