"""``migrator events`` beside a real capture under writers: what it wrote, replayed, is the source's table."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import read_manifest
from migrator.config import project as configuration
from migrator.model.ledger import Ledger
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration

ROWS = 3000
NAMES = ("id", "customer", "items", "state", "comment", "total", "rebate", "created", "paid", "source")
SMALL = "[capture]\nchunk_rows = 200\nchunk_rows_max = 200\ndump_share = 1.0\n"


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=pytest.mark.slow)])
def project(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database) -> Project:
    old: Database = request.getfixturevalue({"postgres": "old_pg", "mariadb": "old_maria"}[request.param])
    create(scenario_database(old), ROWS)
    made = run_project.make(tmp_path / "project", old, new_pg)
    made.config.write_text(made.config.read_text() + SMALL)
    return made


class Capture:
    """The capture half of ``migrator run`` in a thread: no Spark, no target."""

    def __init__(self, project: Project) -> None:
        settings = configuration.load(project.config)
        parts = wiring.parts(settings)
        self.catalog = parts.catalog
        schemas = parts.catalog.tables(["orders"])
        parts.catalog.prepare(schemas)
        log = parts.event_log(1, Ledger(settings.name, 1, 0, None))
        self.log = settings.event_log()
        self.stopping = Stopping()
        loop = CaptureLoop(
            parts.source(schemas),
            Attempt({schema.id: schema for schema in schemas}, None, settings.capture, "1-test"),
            log.writer,
            parts.requests,
            log.room,
            Progress(),
        )
        self.thread = self.stopping.thread("capture", lambda: loop.run(self.stopping))

    def caught_up(self) -> Callable[[], bool]:
        """Holds once the dump is done and everything committed by now is in the event log."""
        goal = self.catalog.position()

        def reached() -> bool:
            self.stopping.raise_failure()
            last = read_manifest(Layout.of(self.log), newest(self.log))
            return last is not None and last.checkpoint.dump_complete() and last.checkpoint.position >= goal

        return reached


def newest(log: Path) -> int:
    return max(Layout.of(log).numbers(), default=0)


@contextmanager
def capturing(project: Project) -> Iterator[Capture]:
    capture = Capture(project)
    try:
        yield capture
    finally:
        capture.stopping.request()
        capture.thread.join(30)
    capture.stopping.raise_failure()


def await_(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline, pause = time.monotonic() + timeout_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        pause.wait(0.05)


def following(project: Project, output: Path) -> subprocess.Popen[bytes]:
    command = ["events", "--config", str(project.config), "--output", str(output), "--follow"]
    return subprocess.Popen(
        [sys.executable, "-m", "migrator", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def replayed(events: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The table after all events. Every event must fit the state that those before it left: no time travel."""
    state: dict[str, dict[str, Any]] = {}
    deleted: set[str] = set()
    dumped: set[str] = set()
    for event in events:
        before, after = event["before"], event["after"]
        key = str((after or before)["id"])
        if event["op"] == "r":
            assert key not in dumped, "a dump row came twice"
            assert key not in deleted, "a dump row brought a deleted row back"
            assert state.get(key, after) == after, "a dump row differs from the newest event of its key"
            dumped.add(key)
        elif before is not None:
            assert state.pop(str(before["id"]), before) == before
            deleted.add(str(before["id"]))
        else:
            assert key not in state
        if after is not None:
            state[key] = after
            deleted.discard(key)
    return state


def source_rows(database: Database) -> dict[str, dict[str, Any]]:
    """The table as the rules of docs/reference/events.md say it, from plain SQL."""
    moment = "%Y-%m-%dT%H:%M:%S.%f" if database.kind == "postgresql" else "%Y-%m-%d %H:%M:%S.%f"
    found = {}
    for row in database.query(f"SELECT {', '.join(NAMES)} FROM orders"):
        image = dict(zip(NAMES, row, strict=True))
        image |= {"id": str(image["id"]), "customer": str(image["customer"]), "total": str(image["total"])}
        found[image["id"]] = {**image, "created": image["created"].strftime(moment)}
    return found


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_bytes().splitlines()]


@pytest.mark.slow
def test_killed_and_started_again_under_writers_it_replays_to_the_table(
    project: Project, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "events.jsonl"
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=400)
    writers.start()
    with capturing(project) as capture:
        for size in (1, 300_000):
            process = following(project, output)
            await_(lambda size=size: output.exists() and output.stat().st_size >= size)  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
            process.communicate()
        process = following(project, output)
        await_(capture.caught_up())
        assert writers.stop().row_changes > 0
        await_(capture.caught_up())
        last = newest(capture.log)
        FileBatchReader(capture.log).release(
            last
        )  # what a run does once the target holds it: the output lags
        (place,) = (capture.log / "readers").glob("*.json")
        await_(lambda: json.loads(place.read_bytes())["place"]["segment"] >= last)
        FileBatchReader(capture.log).release(last)
        assert min(Layout.of(capture.log).numbers()) >= last, "what the output has written is released"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
    assert project.command("events", "--output", str(output)) == 0
    capfd.readouterr()
    assert project.command("status") == 5, "nobody leads"
    assert f"output     json:{output}: up to segment " in capfd.readouterr().out
    events = lines(output)
    places = [(event["source"]["segment"], event["source"]["number"]) for event in events]
    assert places == sorted(set(places)), "an event came twice or out of order"
    assert {event["op"] for event in events} == {"r", "c", "u", "d"}
    expected = source_rows(project.old)
    assert len(expected) > 1000
    assert replayed(events) == expected


def test_parquet_holds_the_same_events(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    project.command("events", "--format", "parquet", "--output", str(folder))  # there before the run
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=400)
    writers.start()
    with capturing(project) as capture:
        await_(capture.caught_up())
        assert writers.stop().row_changes > 0
        project.old.execute(
            "UPDATE orders SET items = items + 1 WHERE id <= 20", "DELETE FROM orders WHERE id <= 9"
        )
        await_(capture.caught_up())
    assert project.command("events", "--format", "parquet", "--output", str(folder)) == 0
    found = [row for file in folder.glob("*/*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    found.sort(key=lambda event: (event["segment"], event["number"]))
    assert {"r", "u", "d"} <= {event["op"] for event in found}
    state = replayed(found)
    expected = {
        str(row[0]): tuple(row) for row in project.old.query(f"SELECT {', '.join(NAMES[:7])} FROM orders")
    }
    assert {key: tuple(image[name] for name in NAMES[:7]) for key, image in state.items()} == expected


@pytest.mark.slow
@pytest.mark.spark
def test_beside_a_whole_run_nothing_is_released_before_it_is_written(
    old_pg: Database, new_pg: Database, tmp_path: Path
) -> None:
    create(scenario_database(old_pg), ROWS)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    output = tmp_path / "events.jsonl"
    assert project.command("events", "--output", str(output)) == 0
    writers = OrderWriters(scenario_database(old_pg), ROWS, rate_per_s=200)
    writers.start()
    run = project.process("run", "--plain", "--until", "caught-up")
    process = following(project, output)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert writers.stop().row_changes > 0
    assert project.process("run", "--plain", "--until", "caught-up").wait(120) == 0
    log = configuration.load(project.config).event_log()
    last = newest(log)
    (place,) = (log / "readers").glob("*.json")
    await_(lambda: json.loads(place.read_bytes())["place"]["segment"] >= last)
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 0, complaint
    assert min(Layout.of(log).numbers()) > 1, "the run released nothing: this proves little"
    assert replayed(lines(output)) == source_rows(old_pg)
    assert project.differences() == []
