"""A chunk reader that has chunks read by Spark's executors, one small job each, and reads itself where they can't.

Only ``read`` goes to an executor. Where a chunk ends, and what is visible now, are asked over the connection
of here: both are a look into an index or a snapshot, and an end that is out of date does no harm
(``ChunkReader.bounded``).

A chunk is asked of the executors twice. Then it is read here, and so are all others for a while; then one worker
tries again what executors can do, and the rest follow what it finds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from migrator.adapters.sources.executors.chunk_task import ChunkTask, unpacked
from migrator.connections.same_server import SameServer
from migrator.errors import ConnectionFailed, MigratorError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader

RunThere = Callable[[Callable[[], bytes]], bytes]
"""Runs a picklable function by one task on an executor. Raises ``MigratorError`` when Spark can't; it is
retryable if asking at once again may help."""
REST_S = 60.0
"""Seconds for which the driver reads after executors couldn't."""


class Executors:
    """Knowledge of the executors that the workers of one run share. Any thread may use it.

    Args:
        run: runs a function there.
        say: shows a text to the operator until the next one; an empty one takes it away.
        clock: seconds, rising.
    """

    def __init__(
        self, run: RunThere, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ):
        self.run = run
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = False
        self._again_at_s = 0.0

    def may_read(self) -> bool:
        """Tells whether to ask them for the next chunk."""
        with self._lock:
            if not self._failed:
                return True
            if self._clock() < self._again_at_s:
                return False
            self._again_at_s = self._clock() + REST_S  # one worker tries, the others don't wait for it
            return True

    def failed(self, error: MigratorError) -> None:
        """They couldn't read a chunk that they were asked for again."""
        with self._lock:
            self._failed = True
            self._again_at_s = self._clock() + REST_S
            self._say(f"executors can't read chunks, the driver does for {REST_S:g} s: {error}")

    def succeeded(self) -> None:
        """They have read a chunk."""
        with self._lock:
            if self._failed:
                self._failed = False
                self._say("")


class ExecutorChunkReader:
    """Implements ``ChunkReader`` by asking executors.

    Args:
        make: makes their reader; can be pickled. It knows ``same`` as it is when the job is made.
        here: a reader of this process, which connects when first needed.
        same: knows which server the log is read from.
        executors: shared with the other workers.
    """

    def __init__(
        self, make: Callable[[], ChunkReader], here: ChunkReader, same: SameServer, executors: Executors
    ):
        self._make = make
        self._here = here
        self._same = same
        self._executors = executors

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        """See ``ChunkReader.bounded``."""
        return self._here.bounded(request, schema)

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """See ``ChunkReader.read``."""
        if self._executors.may_read():
            chunk = self._asked(ChunkTask(self._make, request, schema))
            if chunk is not None:
                return chunk
        return self._here.read(request, schema)

    def witness(self) -> Witness | None:
        """See ``ChunkReader.witness``."""
        return self._here.witness()

    def close(self) -> None:
        """See ``ChunkReader.close``."""
        self._here.close()

    def _asked(self, task: ChunkTask) -> Chunk | None:
        """The chunk as executors read it; None where they can't. Raises what is wrong with the chunk itself."""
        for last in (False, True):
            log = self._same.log()
            try:
                answer = self._executors.run(task)
            except MigratorError as error:  # Spark's: an executor was lost, there is none, it lacks a module
                failure = error
            else:
                try:
                    chunk = unpacked(answer, task.request)
                except ConnectionFailed as error:  # the source may be within reach of the driver only
                    failure = error
                else:
                    self._executors.succeeded()
                    return self._of_this_log(chunk, log)
            if last or not failure.retryable:
                self._executors.failed(failure)
                return None
        raise AssertionError("the last attempt returns")

    def _of_this_log(self, chunk: Chunk, log: str) -> Chunk:
        """The chunk, unless the log moved while its task waited or ran: its check was of the server before.

        A task may wait long for a free slot. The old primary may still answer then, and no longer be the log's.
        """
        if self._same.log() != log:
            raise ConnectionFailed(
                "the log moved to another server while an executor read a chunk",
                where=f"{chunk.request.table}, now read from {self._same.log()}",
                cause=f"the chunk was asked for when the log was read from {log or 'nowhere yet'}",
                remedy="nothing: the chunk is read again",
                retryable=True,
            )
        return chunk
