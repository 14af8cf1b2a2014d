"""Writers of the orders in a process of their own: what they do costs the measured one none of its Python's
time."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from migrator.errors import MigratorError
from scenarios.bench.orders.old_schema import OrderWriters
from scenarios.database import Database

_ANSWER_S = 60.0
_START, _REPORT, _STOP = "start", "report", "stop"


@dataclass(frozen=True, slots=True)
class Done:
    """The work that the writers did.

    Attributes:
        row_changes: committed.
        commits: transactions of them.
    """

    row_changes: int
    commits: int


class OrderWritersApart:
    """:class:`~scenarios.bench.orders.old_schema.OrderWriters` in a process that ends with the block, or with
    this one.

    Args:
        database, rows, rate_per_s: see there.
    """

    def __init__(self, database: Database, rows: int, *, rate_per_s: float | None):
        # a fork would have locks that threads hold which it hasn't got
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, database, rows, rate_per_s), daemon=True
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> OrderWritersApart:
        """Returns the writers, not started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process."""
        self._ours.close()
        self._process.kill()
        self._process.join()

    def start(self) -> None:
        """Begin to write; returns once they do. Raises as :meth:`report` does."""
        self._asked(_START)

    def report(self) -> Done:
        """Reports the work done so far. Raises ``MigratorError`` if the process has ended or doesn't answer."""
        return self._asked(_REPORT)

    def stop(self) -> Done:
        """End, and tell what was done. Raises as :meth:`report` does."""
        return self._asked(_STOP)

    def _asked(self, what: str) -> Done:
        with suppress(EOFError, OSError):
            self._ours.send(what)
            if self._ours.poll(_ANSWER_S):
                answer: Done = self._ours.recv()
                return answer
        self._process.join(1.0)
        code = self._process.exitcode
        raise MigratorError(
            "the writers' process doesn't answer",
            cause=f"no answer for {_ANSWER_S:g} s" if code is None else f"it has ended with exit code {code}",
            remedy="see what it has printed, and whether the old database can be reached",
        )


def _serve(theirs: Connection, database: Database, rows: int, rate_per_s: float | None) -> None:
    """The process: does what it is asked for until it is told to stop, or nobody is there to ask."""
    writers = OrderWriters(database, rows, rate_per_s=rate_per_s)
    with suppress(EOFError, OSError):
        while (asked := theirs.recv()) != _STOP:
            if asked == _START:
                writers.start()
            theirs.send(_done(writers))
        writers.stop()
        theirs.send(_done(writers))


def _done(writers: OrderWriters) -> Done:
    report = writers.report()
    return Done(report.row_changes, report.commits)
