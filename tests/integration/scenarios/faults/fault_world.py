"""A world of one real server and a process that stands for the pipeline, for tests of faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios import database as scenario
from scenarios.faults.fault import PlacedFault
from scenarios.faults.process_tree import descendants, send
from scenarios.faults.processes import await_true
from scenarios.faults.registry import fault
from scenarios.proxy.proxy import TcpProxy
from scenarios.scenario import FaultSpec
from scenarios.world import Server, Side, World
from tests.servers import Database

TIMEOUT_S = 10.0
# Syncs a file, allocates memory, and writes a line: number, wall clock, what failed. Each allocation is larger than
# the one before: a fault that measures this process while it holds one leaves room for as much, never for the next.
PROGRAM = """
import os, sys, time
folder, number = sys.argv[1], 0
while True:
    number, problems = number + 1, []
    try:
        with open(os.path.join(folder, "work"), "wb") as file:
            file.write(b"x" * 65536)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        problems.append(error.strerror)
    try:
        bytearray((64 << 20) + (number << 16))
    except MemoryError:
        problems.append("no memory")
    print(number, time.time(), ",".join(problems) or "well", flush=True)
    time.sleep(0.01)
"""
WITH_CHILDREN = """
import subprocess, sys
java = subprocess.Popen(["java", "100"], executable="/bin/sleep")
daemon = subprocess.Popen([sys.executable, "-c", '''
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", "pyspark.worker"]).wait()
''', "pyspark.daemon"])
print(1, 0, "well", flush=True)
java.wait(); daemon.wait()
"""


class StandInPipeline:
    """A process under ``scenarios.world.Pipeline``; its lines go to a file."""

    def __init__(self, folder: Path, state: Path, program: str = PROGRAM):
        self.environment: Mapping[str, str] = {}
        self.starts = 0
        self._lines = folder / "pulse"
        self._state = state
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.running
        self.starts += 1
        self._state.mkdir(exist_ok=True)
        with self._lines.open("wb") as lines:
            self._process = subprocess.Popen(
                [sys.executable, "-c", self._program, str(self._state)],
                stdout=lines,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        await_true(lambda: self.pulse()[0] > 0, "the process works")

    def stop(self) -> None:
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            send([self.pid, *descendants(self.pid)], signal.SIGKILL)
            self._process.wait()

    def pulse(self) -> tuple[int, float, str]:
        """Number, wall clock and problems of its newest line."""
        whole = self._lines.read_text().rpartition("\n")[0] if self._lines.exists() else ""
        if not whole:
            return 0, 0.0, ""
        number, clock, problems = whole.rpartition("\n")[2].split(" ", 2)
        return int(number), float(clock), problems


def scenario_database(database: Database) -> scenario.Database:
    return scenario.Database(
        database.kind,  # type: ignore[arg-type]
        database.host,
        database.port,
        database.database,
        database.user,
        database.password,
    )


def make_world(
    folder: Path,
    database: Database,
    server: Server,
    proxy: TcpProxy | None = None,
    program: str = PROGRAM,
    user: tuple[str, str] = ("", ""),
) -> tuple[World, StandInPipeline]:
    """Both sides are the one database; the pipeline isn't started."""
    direct = scenario_database(database)
    via = scenario.Database(
        direct.kind,
        direct.host,
        proxy.port if proxy is not None else direct.port,
        direct.database,
        user[0] or direct.user,
        user[1] or direct.password,
    )
    side = Side(direct, via, server, proxy)
    project = folder / "project"
    project.mkdir()
    config = project / "migration.toml"
    config.write_text('[migration]\nname = "faults"\n')
    pipeline = StandInPipeline(folder, project / ".migrator", program)
    return World(folder, config, side, side, pipeline, lambda: 0, lambda pid: 0), pipeline


def placed(world: World, do: str, **options: Any) -> PlacedFault:
    return fault(FaultSpec(do, options=options), world)


def pulse_problem(pipeline: StandInPipeline, wanted: str) -> None:
    await_true(lambda: wanted in pipeline.pulse()[2], f"the process reports {wanted!r}", TIMEOUT_S)


def as_test_database(world: World) -> Database:
    at = world.source.direct
    return Database(at.host, at.port, at.database, at.user, at.password, at.kind)
