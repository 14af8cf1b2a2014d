"""Any SQL, run in the course of a scenario: DDL, TRUNCATE, rogue writes, awkward values, XA, savepoints."""

from __future__ import annotations

from scenarios.faults.fault import Fault, Options, side_of
from scenarios.faults.session import execute
from scenarios.world import World


class Sql(Fault):
    """Runs ``sql`` (a text or a list) on one connection in autocommit mode; it may open transactions itself.

    Option ``undo``: the same, run when healed.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self.side = options.side()
        self._statements = options.texts("sql")
        self._undo = options.texts("undo", ())
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        execute(side_of(world, self.side).direct, self._statements)
        self._effect = f"{len(self._statements)} statements run on the {self.side}"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._undo:
            execute(side_of(world, self.side).direct, self._undo)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect


FAULTS: dict[str, type[Fault]] = {"sql": Sql}
