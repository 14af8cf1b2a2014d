"""Plays a soak: one migration, writers for as long as is asked, the run killed now and then, tables dumped
again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.run.failure import Stopping
from migrator.wiring import parts as wiring
from migrator.wiring.target import peek
from scenarios.pipeline import PipelineProcess
from scenarios.play.stage import Stage, set_up
from scenarios.play.verified import verified
from scenarios.scenario import Engine, Scenario, WorkloadSpec
from scenarios.soak import sampling
from scenarios.soak.judgement import Sample
from scenarios.workload import Workload
from verify.history.result import CheckResult

LIVES = 4
"""Processes, one after the other: each is killed, but for the last, which ends as Ctrl-C would end it."""
REQUESTS_A_LIFE = 3
_SAMPLES = 480
_LEAST_EVERY_S, _MOST_EVERY_S = 0.5, 30.0
_DRAIN_S = 600.0
_START_S = 300.0
_VERIFY_S = 900.0
_TURN_S = 0.2


@dataclass(frozen=True, slots=True)
class Order:
    """The parameters of a soak.

    Attributes:
        for_s: how long the writers write, from the moment when the target holds the first dump.
        engine: of the source.
        rate_per_s: row changes per second.
        keys: rows of the source before.
        seed: of writers and project.
    """

    for_s: float
    engine: Engine = "postgresql"
    rate_per_s: float = 100.0
    keys: int = 20_000
    seed: int = 1


@dataclass(slots=True)
class Played:
    """The result of a soak.

    Attributes:
        samples: in the order of time.
        seconds: how long the writers wrote.
        row_changes: how many they made.
        kills: processes killed.
        requests: dump requests made.
        exit_code: of the last process.
        final: what ``migrator verify`` said at rest.
    """

    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    row_changes: int = 0
    kills: int = 0
    requests: int = 0
    exit_code: int | None = None
    final: CheckResult | None = None


def play(order: Order, folder: Path, say: Callable[[str], None]) -> Played:
    """Plays it on servers that are started and stopped here. Raises ``MigratorError`` when the run ends by itself.

    Args:
        order: what is asked for.
        folder: gets the run's output.
        say: takes a line now and then.
    """
    with ExitStack() as stack:
        stage = set_up(stack, _scenario(order), order.engine, order.seed)
        pipeline = PipelineProcess(stage.config, folder / "run.log", lambda: stage.environment)
        stack.callback(pipeline.close)
        writers = Workload(
            stage.source.direct,
            stage.workload.actions(_scenario(order).workload),
            seed=order.seed,
            rate_per_s=order.rate_per_s,
            threads=4,
        )
        soak = _Soak(order, stage, pipeline, say)
        pipeline.start()
        soak.until(lambda: _dumped(stage), _START_S, "the first dump")
        say("dumped; the writers begin")
        writers.start()
        stack.callback(writers.stop)
        soak.hold(lambda: writers.report().row_changes)
        report = writers.stop()
        soak.played.row_changes = report.row_changes
        goal = wiring.source_position(stage.settings)
        soak.until(lambda: wiring.applied_reaches(stage.settings, goal), _DRAIN_S, "the drain")
        pipeline.stop()
        ended = pipeline.exited()
        soak.played.exit_code = None if ended is None else ended.code
        written = stage.settings.reports() / "verify.json"
        soak.played.final = verified(stage.config, written, stage.environment, "equal", _VERIFY_S)
        return soak.played


def _scenario(order: Order) -> Scenario:
    rows = 1_000
    return Scenario(
        "soak",
        "A migration goes on for hours",
        WorkloadSpec("registers", keys=order.keys),
        settings={
            "capture": {"chunk_rows": rows, "chunk_rows_min": rows, "chunk_rows_max": rows},
            "apply": {"batch_rows": 20_000},
        },
    )


class _Soak:
    def __init__(self, order: Order, stage: Stage, pipeline: PipelineProcess, say: Callable[[str], None]):
        self.played = Played()
        self._order = order
        self._stage = stage
        self._pipeline = pipeline
        self._say = say
        self._clock = Stopping()

    def until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Waits; raises ``MigratorError`` when it takes too long, or the run ends."""
        deadline = time.monotonic() + timeout_s
        while not _asked(condition):
            self._still_there()
            if time.monotonic() > deadline:
                raise MigratorError(f"{what} did not end within {timeout_s:g} s", where="soak")
            self._clock.wait(_TURN_S)

    def hold(self, written: Callable[[], int]) -> None:
        """Samples, asks for dumps and kills until the time is over."""
        order, began = self._order, time.monotonic()
        every_s = min(max(order.for_s / _SAMPLES, _LEAST_EVERY_S), _MOST_EVERY_S)
        kills = [order.for_s * number / LIVES for number in range(1, LIVES)]
        asked = LIVES * REQUESTS_A_LIFE
        # Not while the run is being started again.
        requests = [order.for_s * (number + 0.5) / asked for number in range(asked)]
        while (now := time.monotonic() - began) < order.for_s:
            self._still_there()
            self.played.samples.append(Sample(now, self._pipeline.starts, self._figures()))
            if requests and now >= requests[0]:
                requests.pop(0)
                self._ask_for_a_dump()
            if kills and now >= kills[0]:
                kills.pop(0)
                self._say(f"{now:.0f} s, {written():,} row changes: killed")
                self._pipeline.kill()
                self.played.kills += 1
                self._pipeline.start()
            self._clock.wait(every_s)
        self.played.seconds = time.monotonic() - began

    def _figures(self) -> Mapping[str, float]:
        stage = self._stage
        return {
            **sampling.processes(self._pipeline.pid),
            "state_bytes": sampling.folder_bytes(stage.settings.event_log().parent),
            **sampling.servers(stage.source.direct, stage.target.direct),
        }

    def _ask_for_a_dump(self) -> None:
        """A range of keys, another one each time."""
        number = self.played.requests
        width = max(self._order.keys // 4, 1)
        first = 1 + number * width % self._order.keys
        command = [*python_m("migrator"), "dump", "start", "--config", str(self._stage.config)]
        command += ["--table", "register", "--from", str(first), "--to", str(first + width)]
        environment = {**os.environ, **self._stage.environment}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise MigratorError("a dump request was refused", where="soak", cause=done.stderr[-1000:])
        self.played.requests += 1

    def _still_there(self) -> None:
        ended = self._pipeline.exited()
        if ended is not None:
            raise MigratorError(
                "the run ended by itself", where="soak", cause=f"exit code {ended.code}; {ended.error}"
            )


def _dumped(stage: Stage) -> bool:
    ledger = peek(stage.settings)
    return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()


def _asked(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except MigratorError:
        return False  # a server that has no room for a moment, or no ledger yet
