"""One chunk read as an executor does it, and the way of its result to the driver.

Rows, witness and high position are one value from one reader on one connection made for this read: there is
no way in which the rows of one attempt could meet the witness of another, however often Spark runs a task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from migrator.errors import MigratorError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A callable for tasks. It travels inside the pickled job, with the connection settings that ``make`` holds.

    Attributes:
        make: makes the reader, on the executor. Never shown: the password is part of it.
        request, schema: what is asked.
    """

    make: Callable[[], ChunkReader] = field(repr=False)
    request: ChunkRequest
    schema: TableSchema

    def __call__(self) -> bytes:
        """The chunk, or the named error of reading it, for ``unpacked``."""
        try:
            with closing(self.make()) as reader:
                return _packed(reader.read(self.request, self.schema))
        except MigratorError as error:  # an answer: to Spark it would be a failed task, to be run again
            return pickle.dumps(error)


def _packed(chunk: Chunk) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.rows.schema) as stream:
        stream.write_table(chunk.rows)
    return pickle.dumps(replace(chunk, rows=sink.getvalue().to_pybytes()))


def unpacked(answer: bytes, request: ChunkRequest) -> Chunk:
    """The chunk that was asked for. Raises the ``MigratorError`` of reading it."""
    found = pickle.loads(answer)
    if isinstance(found, MigratorError):
        raise found
    chunk: Chunk = found
    with pa.ipc.open_stream(chunk.rows) as stream:
        return replace(chunk, request=request, rows=stream.read_all())
