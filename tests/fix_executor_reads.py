"""Chunk readers that ask the test run's own Spark, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from migrator.adapters.sources.executors.chunk_reader import ExecutorChunkReader, Executors
from migrator.connections.same_server import SameServer
from migrator.ports.source import ChunkReader
from tests.integration.capturing import Capturing
from transforms.on_spark.one_task import on_executor


@dataclass
class Asked:
    """Executors of a session, counted.

    Attributes:
        answers: tasks that came back, one entry each with its size in bytes.
        said: what an operator was told.
    """

    spark: SparkSession
    answers: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    same: SameServer = field(default_factory=SameServer)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.executors = Executors(self.run, self.said.append, lambda: self.now_s)

    def run(self, work: Callable[[], bytes]) -> bytes:
        """See ``RunThere``."""
        answer = on_executor(self.spark, work, 60.0)
        self.answers.append(len(answer))
        return answer

    def reader(self, make: Callable[[], ChunkReader], here: ChunkReader) -> ExecutorChunkReader:
        """A reader whose executors make theirs with ``make``, a lambda or inner function (pickled by value)."""
        return ExecutorChunkReader(make, here, self.same, self.executors)

    def reading(self, capture: Capturing, make: Callable[[], ChunkReader] | None = None) -> Capturing:
        """The capture, its chunks read by executors."""
        here = capture.chunk_reader
        return replace(capture, chunk_reader=lambda: self.reader(make or here, here()))
