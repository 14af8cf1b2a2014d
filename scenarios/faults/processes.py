"""Faults of the pipeline's own processes: killed, stopped, or left without their JVM."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.faults.fault import Fault, Options, impossible
from scenarios.faults.process_tree import alive, command_line, descendants, oom_score, send
from scenarios.faults.standin import StandIn
from scenarios.world import World

_DEADLINE_S = 30.0
_POLL_S = 0.02


class KillPipeline(Fault):
    """SIGKILL to the pipeline's process and all below it. Healing starts it again, unless it runs already."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._killed = 0

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        pid = running_pid(world, self.name)
        world.pipeline.kill()
        await_true(lambda: not alive(pid), f"process {pid} ends after SIGKILL")
        self._killed = pid

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if not world.pipeline.running:
            world.pipeline.start()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return f"process {self._killed} killed" if self._killed else ""


class StopContinue(Fault):
    """SIGSTOP to the whole pipeline, SIGCONT after ``seconds`` or when healed.

    ``alone: true``: only the process itself is stopped, not those below it: in a cut-over the way back goes on.
    ``standin: true``: meanwhile a second run takes over, as if on another machine (it finds no lease, the event log
    is shared); the stopped one wakes up as a zombie that must be refused. Healing waits until the stand-in has
    written, wakes the zombie, waits until that one has ended or has written in its turn (which the checkers judge),
    kills the stand-in, and starts the pipeline again if it doesn't run. On a PostgreSQL source the stopped process
    keeps the replication slot until ``wal_sender_timeout``: set it to a few seconds.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._standin = StandIn() if options.flag("standin", False) else None
        self._seconds = options.number("seconds", 0.0 if self._standin else None)
        self._alone = options.flag("alone", False)
        self._stopped: list[int] = []
        self._timer: threading.Timer | None = None
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        pid = running_pid(world, self.name)
        self._stopped = [pid, *(() if self._alone else descendants(pid))]
        send(self._stopped, signal.SIGSTOP)
        self._effect = f"{len(self._stopped)} processes stopped"
        if self._standin is not None:
            self._standin.start(world, pid)
        else:
            self._timer = threading.Timer(self._seconds, self._continue)
            self._timer.daemon = True
            self._timer.start()

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        zombie = self._stopped[0] if self._stopped else 0
        if self._standin is None or not zombie:
            self._continue()
            return
        self._standin.await_lead(world)
        before = world.applied(zombie)
        self._continue()
        await_true(
            lambda: not alive(zombie) or world.applied(zombie) > before,
            "the replaced leader ends, or writes",
            self._standin.timeout_s,
        )
        came = "ended" if world.applied(zombie) == before else "WROTE"
        self._effect += f"; replaced by {self._standin.leader()}, then the sleeper {came}"
        self._standin.kill()
        if not world.pipeline.running:
            world.pipeline.start()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """See ``Fault.close``."""
        if self._timer is not None:
            self._timer.cancel()
        self._continue()
        if self._standin is not None:
            self._standin.kill()

    def _continue(self) -> None:
        stopped, self._stopped = self._stopped, []
        send(stopped, signal.SIGCONT)


class KillChild(Fault):
    """SIGKILL to processes below the pipeline that a subclass chooses."""

    what = ""

    def __init__(self, options: Options):
        super().__init__(options)
        self._killed: list[int] = []

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        chosen = self._choose(running_pid(world, self.name))
        if not chosen:
            raise impossible(self.name, f"the pipeline has no {self.what} now")
        self._kill(chosen)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return f"{self.what} {', '.join(map(str, self._killed))} killed" if self._killed else ""

    def _kill(self, chosen: list[int]) -> None:
        send(chosen, signal.SIGKILL)
        await_true(lambda: not any(map(alive, chosen)), f"{self.what} ends after SIGKILL")
        self._killed = chosen

    def _choose(self, pid: int) -> list[int]:
        raise AssertionError(f"{self.name} chooses nothing")


class KillJvm(KillChild):
    """SIGKILL to Spark's JVM: the driver and, in local mode, all executors."""

    what = "JVM"

    def _choose(self, pid: int) -> list[int]:
        return [below for below in descendants(pid) if Path(*command_line(below)[:1]).name == "java"]


class KillWorker(KillChild):
    """SIGKILL to Spark's Python workers; there are some only while a mapping uses Python functions.

    ``at_work: true``: they are only stopped at first, so that the next task gives its rows to one of them and
    waits; healing kills them in the middle of it.
    """

    what = "Spark Python worker"

    def __init__(self, options: Options):
        super().__init__(options)
        self._at_work = options.flag("at_work", False)
        self._stopped: list[int] = []

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        if not self._at_work:
            super().fire(world)
            return
        self._stopped = self._choose(running_pid(world, self.name))
        if not self._stopped:
            raise impossible(self.name, f"the pipeline has no {self.what} now")
        send(self._stopped, signal.SIGSTOP)

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        stopped, self._stopped = self._stopped, []
        if stopped:
            self._kill(stopped)

    def close(self) -> None:
        """See ``Fault.close``."""
        send(self._stopped, signal.SIGCONT)

    def _choose(self, pid: int) -> list[int]:
        pythons = [
            below
            for below in descendants(pid)
            if any(word.startswith("pyspark.") for word in command_line(below))
        ]
        # The daemon forks the workers: those below it, or it alone where it forked none.
        below_daemon = [worker for daemon in pythons for worker in descendants(daemon) if worker in pythons]
        return below_daemon or pythons


class KillExecutor(Fault):
    """SIGKILL to executors of the Spark cluster that the pipeline runs on: one, or ``all: true``.

    The cluster starts others in their place by itself.
    """

    needs_cluster = True

    def __init__(self, options: Options):
        super().__init__(options)
        self._all = options.flag("all", False)
        self._killed: list[int] = []

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        executors = world.cluster.executors() if world.cluster is not None else []
        if not executors:
            raise impossible(self.name, "there is no executor now")
        chosen = executors if self._all else executors[:1]
        send(chosen, signal.SIGKILL)
        await_true(lambda: not any(map(alive, chosen)), "executors end after SIGKILL")
        self._killed = chosen

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return f"executor {', '.join(map(str, self._killed))} killed" if self._killed else ""


class KernelsVictim(KillChild):
    """SIGKILL to the process of the pipeline that the kernel would kill if memory ran out now.

    The kernel's own choice (``oom_score``, see proc(5)) and its own signal; memory doesn't run out, for on a
    machine that is not ours alone it would take others with it.
    """

    what = "process with the highest oom_score"

    def _choose(self, pid: int) -> list[int]:
        scores = {process_id: oom_score(process_id) for process_id in [pid, *descendants(pid)]}
        return [max(scores, key=lambda process_id: scores[process_id])]


def running_pid(world: World, fault: str) -> int:
    """The pipeline's process. Raises ``MigratorError`` when it doesn't run: there is nothing to break."""
    if not world.pipeline.running:
        raise impossible(fault, "the pipeline isn't running")
    return world.pipeline.pid


def await_true(condition: Callable[[], bool], what: str, timeout_s: float = _DEADLINE_S) -> None:
    """Waits until a condition holds. Raises ``MigratorError`` with its description if that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise MigratorError(f"not within {timeout_s:g} s: {what}", where="fault")
        threading.Event().wait(_POLL_S)


FAULTS: dict[str, type[Fault]] = {
    "kill_pipeline": KillPipeline,
    "stop_continue": StopContinue,
    "kill_jvm": KillJvm,
    "kill_worker": KillWorker,
    "kill_executor": KillExecutor,
    "oom_kill": KernelsVictim,
}
