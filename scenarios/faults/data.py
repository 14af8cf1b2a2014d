"""Any SQL, run in the course of a scenario: DDL, TRUNCATE, rogue writes, awkward values, XA, savepoints."""

from __future__ import annotations

import threading

from migrator.run.failure import Stopping
from scenarios.faults.fault import Fault, Options, side_of
from scenarios.faults.session import execute
from scenarios.world import World

_AGAIN_S = 0.1


class Sql(Fault):
    """Runs ``sql`` (a text or a list) on one connection in autocommit mode; it may open transactions itself.

    Option ``insist: true``: repeats them until the last statement changes a row. Option ``undo``: statements to run
    when healed.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self.side = options.side()
        self._statements = options.texts("sql")
        self._insist = options.flag("insist", False)
        self._undo = options.texts("undo", ())
        self._insisting = Stopping()
        self._thread: threading.Thread | None = None
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        if self._insist:
            self._thread = self._insisting.thread("sql", lambda: self._run_until_it_changes_a_row(world))
        else:
            self._run(world)

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self.close()
        self._insisting.raise_failure()
        if self._undo:
            execute(side_of(world, self.side).direct, self._undo)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """See ``Fault.close``."""
        self._insisting.request()
        if self._thread is not None:
            self._thread.join()

    def _run(self, world: World) -> int:
        rows = execute(side_of(world, self.side).direct, self._statements)
        if rows > 0 or not self._insist:
            self._effect = f"{len(self._statements)} statements run on the {self.side}"
        return rows

    def _run_until_it_changes_a_row(self, world: World) -> None:
        while self._run(world) <= 0 and not self._insisting.wait(_AGAIN_S):
            pass


FAULTS: dict[str, type[Fault]] = {"sql": Sql}
