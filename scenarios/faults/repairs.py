"""A repair of the target that dies halfway: between the two statements that put a row right."""

from __future__ import annotations

import os
import subprocess
import threading

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from scenarios.faults.fault import Fault, Options
from scenarios.faults.process_tree import environment
from scenarios.faults.processes import await_true, running_pid
from scenarios.faults.session import HeldTransaction, execute, query
from scenarios.world import World

_DAMAGE_TIMEOUT_S = 120.0
_BLOCKED_TIMEOUT_S = 180.0
_REPAIR_TIMEOUT_S = 300.0
_LOCK_WAIT_S = 5.0
_HOLDER = "scenario_repair"
_UNKNOWN = 3
"""Exit code of a repair whose rows couldn't be judged: the dump hasn't come so far."""


class KillRepair(Fault):
    """Rows of the target are damaged, ``migrator repair --apply`` mends them, and the run is killed while it does.

    ``damage``: one statement on the target, until it changes a row. ``lock``: a statement that locks what the
    second statement of the merge needs, so that the first one has been carried out when the run is seen to
    wait: there it is killed. Then the lock is given back, the run is started again, and the repair must come
    to its end with exit code 0, which it gives only after verifying the rows again. ``table``, ``keys``: what
    to repair.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._damage = options.texts("damage")
        self._lock = options.text("lock")
        self._table = options.text("table")
        self._keys = options.texts("keys")
        self._thread: threading.Thread | None = None
        self._repair: subprocess.Popen[str] | None = None
        self._held: HeldTransaction | None = None
        self._error: MigratorError | None = None
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""

        def work() -> None:
            try:
                self._play(world)
            except MigratorError as error:
                self._error = error

        self._thread = threading.Thread(target=work, name="repair", daemon=True)
        self._thread.start()

    def heal(self, world: World) -> None:
        """Waits for the repair's end; meanwhile a run that was killed is started again.

        Raises ``MigratorError`` with the repair's words when it failed.
        """
        while self._thread is not None and self._thread.is_alive():
            if not world.pipeline.running:
                world.pipeline.start()
            self._thread.join(0.1)
        if self._error is not None:
            raise self._error

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """See ``Fault.close``."""
        if self._repair is not None and self._repair.poll() is None:
            self._repair.kill()
        self._end_lock()

    def _play(self, world: World) -> None:
        target = world.target.direct
        await_true(lambda: execute(target, self._damage) > 0, "the damage meets a row", _DAMAGE_TIMEOUT_S)
        self._held = HeldTransaction(
            target, [f"SET LOCAL application_name = '{_HOLDER}'", self._lock], 0.0, commit=False
        )
        self._held.start(_LOCK_WAIT_S)
        await_true(lambda: self._waits(world), "the run waits for the locked row", _BLOCKED_TIMEOUT_S)
        killed = running_pid(world, self.name)
        world.pipeline.kill()
        self._end_lock()
        repair = self._repair
        assert repair is not None, "it is what waits"
        said, _ = repair.communicate(timeout=_REPAIR_TIMEOUT_S)
        if repair.returncode != 0:
            raise MigratorError(
                f"the repair ended with exit code {repair.returncode}",
                where=self.name,
                cause=said[-1500:],
            )
        self._effect = f"process {killed} killed within the repair's transaction; the repair ended well"

    def _started(self, world: World) -> subprocess.Popen[str]:
        keys = [word for key in self._keys for word in ("--key", key)]
        command = [*python_m("migrator"), "repair", "--config", str(world.config), "--apply"]
        return subprocess.Popen(
            [*command, "--table", self._table, *keys],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment(running_pid(world, self.name))},
        )

    def _waits(self, world: World) -> bool:
        """Returns whether the repair waits for our lock; a repair that can't know yet what differs is started again.

        Raises ``MigratorError`` for one that ended in another way.
        """
        if self._repair is None:
            self._repair = self._started(world)
        elif self._repair.poll() is not None:
            said, _ = self._repair.communicate()
            if self._repair.returncode != _UNKNOWN:
                raise MigratorError(
                    "the repair ended before it met the lock", where=self.name, cause=said[-1500:]
                )
            self._repair = None
        return bool(
            query(
                world.target.direct,
                "SELECT 1 FROM pg_stat_activity waiting JOIN pg_stat_activity holder"
                " ON holder.pid = ANY (pg_blocking_pids(waiting.pid))"
                " WHERE holder.application_name = %s AND waiting.query LIKE 'DELETE%%'",
                [_HOLDER],
            )
        )

    def _end_lock(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.end(_LOCK_WAIT_S)


FAULTS: dict[str, type[Fault]] = {"kill_repair": KillRepair}
