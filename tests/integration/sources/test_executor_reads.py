"""Chunks read by Spark's executors: the same end under writers, whatever dies on the way; and whose evidence."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.sources.executors.chunk_reader import REST_S, ExecutorChunkReader
from migrator.adapters.sources.executors.chunk_task import ChunkTask
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.limits import CaptureLimits
from migrator.ports.source import ChunkReader
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests import fix_postgres_source as postgres_source
from tests.contract.chunk_reader_contract import parts_up_to
from tests.fix_executor_reads import Asked
from tests.integration import run_project
from tests.integration.capture import test_parallel_dump
from tests.integration.capturing import capturing
from tests.integration.run_project import Project, scenario_database
from tests.integration.sources.placed_race import delivered
from tests.servers import Database
from transforms.on_spark.one_task import on_executor

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ONE_ROW = ("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (5, 'old')")
UPDATE = "UPDATE t SET v = 'NEW' WHERE id = 5"
ROWS = 800
LIMITS = CaptureLimits(chunk_rows=40, chunk_rows_min=40, chunk_rows_max=40, linger_s=0.01)


@pytest.fixture
def asked(spark: SparkSession) -> Asked:
    return Asked(spark)


@pytest.fixture(params=["old_pg", "old_maria"])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    return database


@pytest.fixture
def one_row(old_pg: Database) -> Database:
    old_pg.execute(*ONE_ROW, "ALTER TABLE t REPLICA IDENTITY FULL")
    return old_pg


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["witness", "watermark"])
def test_keys_of_several_kinds_under_writers_end_equal(old: Database, asked: Asked, placement: str) -> None:
    test_parallel_dump.create(old)
    tables = ["composite", "words", "bytes"] if placement == "witness" else ["scattered"]
    capture = asked.reading(capturing(old, tables, LIMITS, placement))
    with test_parallel_dump.writing(old) as written:
        capture.run(capture.dumped)
    assert written[0] > 0
    chunks = sum(dump.chunks for dump in capture.progress.snapshot().dumps)
    assert len(asked.answers) >= chunks >= 2 * len(tables)
    capture.run(capture.caught_up())
    test_parallel_dump.equal(capture, old)
    assert asked.said == []


# -- whose evidence ----------------------------------------------------------------------------------------------


def _witness_of_here(self: ExecutorChunkReader, task: ChunkTask) -> Chunk | None:
    """The rows are the executor's, the witness is asked over the driver's connection: the rule that is broken."""
    chunk = _asked(self, task)
    assert chunk is not None
    return replace(chunk, witness=self.witness())


_asked = ExecutorChunkReader._asked


@pytest.mark.parametrize("broken", [False, True], ids=["as it is", "evidence from another connection"])
def test_evidence_from_another_connection_would_let_a_stale_row_through(
    old: Database, asked: Asked, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    """1. an executor reads the row; 2. it is changed, and the log delivers that; 3. the chunk comes to the
    driver."""
    old.execute(*ONE_ROW)
    if old.kind == "postgresql":
        old.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    capture = capturing(old, ["t"], LIMITS)
    (schema,) = capture.schemas.values()
    run = asked.run

    def then_changed(work: Callable[[], bytes]) -> bytes:
        answer = run(work)
        old.execute(UPDATE)
        return answer

    asked.executors.run = then_changed
    if broken:
        monkeypatch.setattr(ExecutorChunkReader, "_asked", _witness_of_here)
    with (
        closing(capture.log_reader()) as log,
        closing(asked.reading(capture).chunk_reader()) as reader,
    ):
        log.start(None)
        chunk = reader.read(ChunkRequest(1, schema.id, None, 10), schema)
        parts = parts_up_to(log, capture.catalog.position())
    assert chunk.rows["v"].to_pylist() == ["old"]
    assert delivered(schema, [*parts, chunk]) == (["NEW", "old"] if broken else ["NEW"])


def test_an_executor_that_reaches_another_server_reads_nothing(
    one_row: Database, new_pg: Database, asked: Asked
) -> None:
    """Its connection is asked who it leads to, as the driver's is; then the driver reads."""
    new_pg.execute(*ONE_ROW, "ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET v = 'elsewhere'")
    source, elsewhere, same = (
        postgres_source.source_of(one_row),
        postgres_source.source_of(new_pg),
        asked.same,
    )
    tables = postgres_source.prepared(source, "t")
    with (
        closing(PostgresLogReader(source, tables, same=same)) as log,
        closing(
            asked.reader(
                lambda: PostgresChunkReader(elsewhere, same=same), PostgresChunkReader(source, same=same)
            )
        ) as reader,
    ):
        log.start(None)
        chunk = reader.read(ChunkRequest(1, tables[0].id, None, 10), tables[0])
    assert chunk.rows["v"].to_pylist() == ["old"]
    assert len(asked.answers) == 2
    (said,) = asked.said
    assert "another server than the log's" in said


# -- what dies ---------------------------------------------------------------------------------------------------


def dying(make: Callable[[Callable[[str], None]], ChunkReader], flag: Path) -> Callable[[], ChunkReader]:
    """A reader whose process is killed in the middle of a read, as long as there is no flag; it makes the flag."""
    name = str(flag)

    def step(point: str) -> None:
        if point == "chunk.snapshot" and not os.path.exists(name):
            with open(name, "x"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: make(step)


def test_a_process_killed_in_a_read_leaves_nothing_and_is_asked_again(
    one_row: Database, asked: Asked, tmp_path: Path
) -> None:
    source = postgres_source.source_of(one_row)
    (schema,) = postgres_source.prepared(source, "t")
    flag = tmp_path / "killed"
    make = dying(lambda step: PostgresChunkReader(source, step), flag)
    with closing(asked.reader(make, PostgresChunkReader(source))) as reader:
        chunk = reader.read(ChunkRequest(1, schema.id, None, 10), schema)
        assert flag.exists(), "nothing was killed: the test proves nothing"
        assert chunk.rows["v"].to_pylist() == ["old"]
        assert (len(asked.answers), asked.said) == (1, [])
    postgres_source.wait_for(
        one_row,
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE '%_chunks'",
    )


def test_while_executors_die_the_driver_reads_and_says_so(one_row: Database, asked: Asked) -> None:
    source = postgres_source.source_of(one_row)
    (schema,) = postgres_source.prepared(source, "t")
    request = ChunkRequest(1, schema.id, None, 10)

    def deadly() -> ChunkReader:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    with closing(asked.reader(deadly, PostgresChunkReader(source))) as reader:
        assert reader.read(request, schema).row_count == 1
    with closing(asked.reader(lambda: PostgresChunkReader(source), PostgresChunkReader(source))) as reader:
        assert reader.read(request, schema).row_count == 1
        assert asked.answers == [], "asked before their rest was over"
        (said,) = asked.said
        assert said.startswith("executors can't read chunks, the driver does for 60 s: ")
        asked.now_s += REST_S
        assert reader.read(request, schema).row_count == 1
    assert len(asked.answers) == 1
    assert asked.said[1:] == [""]


def test_a_python_worker_serves_task_after_task(spark: SparkSession) -> None:
    """A new one imports everything again: seconds a chunk."""
    workers = [on_executor(spark, lambda: str(os.getpid()).encode(), 60.0) for _ in range(8)]
    assert len(set(workers)) < len(workers)


def test_a_task_that_hangs_is_given_up(spark: SparkSession) -> None:
    from migrator.errors import ClusterError

    def hang() -> bytes:
        signal.pause()
        return b""

    with pytest.raises(ClusterError, match="didn't end within 2 s") as caught:
        on_executor(spark, hang, 2.0)
    assert not caught.value.retryable
    assert on_executor(spark, lambda: b"next", 60.0) == b"next"


# -- a whole run -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_under_writers_whose_first_reader_is_killed_ends_equal(
    tmp_path: Path, old: Database, new_pg: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(scenario_database(old), ROWS)
    project: Project = run_project.make(tmp_path / "project", old, new_pg)
    small = (
        '\n[capture]\nchunk_reading = "executors"\nchunk_rows = 100\nchunk_rows_max = 100\ndump_share = 1.0\n'
    )
    project.config.write_text(project.config.read_text() + small)
    flag, read = str(tmp_path / "killed"), []

    def counted(self: ExecutorChunkReader, task: ChunkTask) -> Chunk | None:
        make = task.make

        def mortal() -> ChunkReader:
            if not os.path.exists(flag):
                with open(flag, "x"):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            return make()

        chunk = _asked(self, replace(task, make=mortal))
        read.append(chunk)
        return chunk

    monkeypatch.setattr(ExecutorChunkReader, "_asked", counted)
    writers = OrderWriters(scenario_database(old), ROWS, rate_per_s=100)
    writers.start()
    project.run_here()
    assert writers.stop().row_changes > 0
    project.run_here()
    assert os.path.exists(flag)
    assert len([chunk for chunk in read if chunk is not None]) >= ROWS / 100
    assert project.differences() == []
