"""A verification beside a run that doesn't follow ends in the time given: unknown with its reasons, never equal."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.verify.chunks.chunk_project import ChunkProject
from tests.integration.waiting import await_true
from tests.servers import Database
from verify.tables.rounds import watch
from verify.tables.sweeps import pairing
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

WITHIN_S = 15
WAIT_S = 3600
SLACK_S = 300
"""For what is not broken off, the comparison and the report, on a busy machine; without the limit it would take an
hour, see ``WAIT_S``."""
STANDING = r"\d of 1 tables read, 0 of 1 tables settled, [\d,]+ keys settled, [\d,]+ keys set aside; "


class Writers(threading.Thread):
    """Writes to old rows until it is stopped."""

    def __init__(self, project: Project):
        super().__init__(daemon=True)
        self._project, self._ended = project, threading.Event()
        self.commits = 0

    def __enter__(self) -> Writers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(60)

    def run(self) -> None:
        with self._project.old.connect() as old:
            while not self._ended.wait(0.01):
                old.execute("UPDATE orders SET items = items + 1 WHERE id = %s", (1 + self.commits % 200,))
                self.commits += 1


def report(project: Project) -> dict[str, Any]:
    found = configuration.load(project.config).reports() / "verify.json"
    loaded: dict[str, Any] = json.loads(found.read_text())
    return loaded


@pytest.mark.slow
def test_beside_a_run_that_is_held_it_ends_unknown_and_tells_what_would_settle_it(
    tmp_path: Path,
    old_pg: Database,
    new_pg: Database,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run's process is stopped while writers go on: its slot is in use, so it may follow at any moment."""
    monkeypatch.setattr(watch, "SAY_EVERY_S", 2.0)
    create(scenario_database(old_pg), 200)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    process = project.process("run", "--plain")
    try:
        await_true(
            lambda: (
                project.new.query("SELECT to_regclass('purchase')")[0][0] is not None
                and project.new.query("SELECT count(*) FROM purchase")[0][0] == 200
            ),
            "all is dumped",
            240,
        )
        await_true(lambda: project.command("verify") == 0, "equal beside a run that follows", 240)
        process.send_signal(signal.SIGSTOP)
        with Writers(project) as writers:
            await_true(lambda: writers.commits > 20, "users write")
            capfd.readouterr()
            began = time.monotonic()
            code = project.command("verify", "--within", str(WITHIN_S), "--wait", str(WAIT_S))
            took = time.monotonic() - began
        assert code == 3
        assert took < WITHIN_S + SLACK_S
        said = capfd.readouterr()
        assert re.search(
            r"orders: waiting for the target to reach [0-9A-F]+/[0-9A-F]+, it stands at", said.err
        )
        assert re.search(STANDING, said.err), said.err
        found = report(project)
        (table,) = found["tables"]
        assert (found["verdict"], found["within_s"], table["verdict"]) == ("unknown", WITHIN_S, "unknown")
        assert table["counts"]["set_aside"] > 0, "rows were written that the target lacks"
        assert table["counts"]["different"] == 0, "lag is no difference"
        open_keys = table["counts"]["set_aside"]
        late = rf"{open_keys} keys are unsettled: the {WITHIN_S} s given \(--within\) were over: the target"
        waited = (
            rf"{open_keys} keys differ, but the ledger did not reach the source read at \S+ in [0-9.]+ s, it"
        )
        found_out = re.match(rf"({late}|{waited}) stood at \S+@", table["reason"])
        assert found_out, "late: a busy machine compares beyond the time"
        assert "migrator run" in table["remedy"]
        process.send_signal(signal.SIGCONT)
        await_true(lambda: project.command("verify") == 0, "what it says settles it", 240)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture
def pieces(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> ChunkProject:
    made = ChunkProject(old_pg, new_pg, spark, tmp_path)
    made.load()
    made.ledger()
    return made


ALL = 205


class TimePasses:
    """Has the time over behind so many target reads of a round."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reads: int, in_round: int = 1):
        self.left, self.round = reads, 1

        def over(own: watch.Watch) -> bool:
            self.round = own.round
            return self.left <= 0

        self.in_round = in_round
        monkeypatch.setattr(watch.Watch, "over", over)

    def __call__(self, name: str) -> None:
        self.left -= name == pairing.TARGET_READ and self.round == self.in_round


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server hashes anything, so all rows are read; each piece is read when the one before it is judged."""
    monkeypatch.setattr(pairing, "AHEAD", 1)
    monkeypatch.setattr("verify.tables.sweeps.chunk_choice.pushed", lambda *_: None)


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
def test_rows_read_in_time_are_compared_and_a_difference_among_them_is_one(
    pieces: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = pieces.chunks(step=TimePasses(monkeypatch, 5), rows=10).tables
    assert (found.verdict, found.counts.set_aside, found.counts.equal) == (Verdict.UNKNOWN, 0, 50)
    assert "only a part of its rows was compared" in found.reason
    assert "--within" in found.remedy
    pieces.new.execute("UPDATE item SET big = big + 1 WHERE item_id = 3")
    (found,) = pieces.chunks(step=TimePasses(monkeypatch, 5), rows=10).tables
    assert (found.verdict, found.counts.different, found.counts.equal) == (Verdict.DIFFERENT, 1, 49)
    (found,) = pieces.chunks(step=TimePasses(monkeypatch, 1000), rows=10).tables
    assert (found.counts.equal, found.counts.different) == (ALL - 1, 1), (
        "the control: with time it is all rows"
    )


def test_digests_of_which_only_some_were_compared_are_not_all(
    pieces: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "AHEAD", 1)
    (found,) = pieces.chunks(step=TimePasses(monkeypatch, 5), rows=10).tables
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason.startswith("none of its rows were compared")


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(("reads", "left"), [(1, 8), (3, 4), (1000, 0)])
def test_keys_that_are_not_read_again_in_time_stay_set_aside(
    pieces: ChunkProject, monkeypatch: pytest.MonkeyPatch, reads: int, left: int
) -> None:
    """Ten rows are written while they are read, and read again in lists of two."""
    monkeypatch.setattr("verify.tables.rounds.chunked._KEYS_IN_A_LIST", 2)
    passes, written = TimePasses(monkeypatch, reads, in_round=2), list[str]()

    def step(name: str) -> None:
        passes(name)
        if name == pairing.SOURCE_VIEW and not written:
            written.append("all of the first piece")
            pieces.old.execute("UPDATE thing SET big = big + 1 WHERE id <= 10")
            pieces.copy("id <= 10")
            pieces.ledger()

    (found,) = pieces.chunks(step=step, rows=10).tables
    assert (found.counts.equal, found.counts.set_aside) == (ALL - left, left)
    assert found.verdict is (Verdict.UNKNOWN if left else Verdict.EQUAL)
    assert found.reason.startswith(f"{left} keys are unsettled") == bool(left)
