"""Messages of the threads that read the source to the capture loop, and of the loop to those that read chunks."""

from __future__ import annotations

import queue
from dataclasses import dataclass

from migrator.errors import MigratorError, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import LogRecord
from migrator.model.load import Load
from migrator.model.requests.request import RequestBook
from migrator.model.table import TableSchema


@dataclass(frozen=True, slots=True)
class Records:
    """Log records in order."""

    records: list[LogRecord]


@dataclass(frozen=True, slots=True)
class ChunkBounded:
    """The message that the end of a chunk about to be read is known."""

    request: ChunkRequest


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A finished chunk read."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A witness of a moment ago."""

    witness: Witness | None


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The log is read over a new connection; what it brings comes after this."""


@dataclass(frozen=True, slots=True)
class Halted:
    """The log can't be read past its place: a table changed there. What was read before it comes before this."""

    error: SchemaError


@dataclass(frozen=True, slots=True)
class ChunkRefused:
    """A chunk of a dump request can't be read, now or later."""

    request: ChunkRequest
    error: MigratorError


@dataclass(frozen=True, slots=True)
class Sampled:
    """The source's load of a moment ago; None: nobody looks any more."""

    load: Load | None


@dataclass(frozen=True, slots=True)
class BookRead:
    """The message that the requests of operators for dumps have changed."""

    book: RequestBook


Input = (
    Records | Reconnected | Halted | ChunkBounded | ChunkRead | ChunkRefused | Witnessed | Sampled | BookRead
)
Inputs = queue.Queue[Input]
Asked = queue.Queue[tuple[ChunkRequest, TableSchema]]
"""Chunks to read; each is taken by one pump."""
