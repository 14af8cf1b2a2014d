"""The main part of a run: writers write, faults come and go, the pipeline is started again when it was killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from migrator.wiring import parts as wiring
from migrator.wiring.target import peek
from scenarios.faults.points import PointServer
from scenarios.pipeline import Exit, PipelineProcess
from scenarios.play.fault_plan import CAPTURE_BEGINS, FaultPlan
from scenarios.play.run_result import HALTS, RESTARTS, RESUMES, STALLS
from scenarios.scenario import Scenario
from scenarios.workload import Workload, WriterReport

_TURN_S = 0.1
_PATIENCE_S = 240.0
"""The longest wait without any sign of life: a Spark session on a very busy machine takes minutes to start."""
_LONGEST_S = 600.0
"""The longest duration of either half of a run, whatever signs of life there are."""
_HALT_S = 60.0
"""The longest wait for the expected halt, once everything that leads to it has happened."""
_EFFECT_S = 60.0
"""The longest wait for a fired fault that waits for its byte, its COMMIT or its call."""
_WAITING_RATE_PER_S = 20.0
"""The writers' rate once they have made their changes, while a fault is still to come or its victim to come back."""
_MOST_STARTS = 30


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the pipeline: one of ``run_result``'s endings, its named error, and whether it had caught up."""

    ending: str
    error: str = ""
    drained: bool = False


class _Patience:
    """A deadline that moves on with every sign of life, up to a last one."""

    def __init__(self, signs: Callable[[], object]):
        self._signs = signs
        self._seen = signs()
        self._seen_at = self._began = time.monotonic()

    def left(self) -> bool:
        """Returns whether the last sign of life is recent enough to go on waiting."""
        now, seen = time.monotonic(), self._signs()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        return now < min(self._seen_at + _PATIENCE_S, self._began + _LONGEST_S)


class Act:
    """The main part of one run: ``play``, or ``write`` and then ``drain`` unless the run has ended.

    Args:
        scenario: what is played.
        settings: of the project, straight to the servers.
        pipeline: not started yet.
        plan: prepared.
        points: open.
        writers: they begin when the log is first read.
    """

    def __init__(
        self,
        scenario: Scenario,
        settings: configuration.Settings,
        pipeline: PipelineProcess,
        plan: FaultPlan,
        points: PointServer,
        writers: Workload,
    ):
        self._scenario = scenario
        self._settings = settings
        self._pipeline = pipeline
        self._plan = plan
        self._points = points
        self._writers = writers
        self._clock = Stopping()
        self._halting = scenario.expect.ending == HALTS
        self._excuse = ""

    def play(self) -> tuple[Ended, WriterReport]:
        """Plays the whole part; returns the end of the pipeline, and what the writers did, who have stopped."""
        ended = self.write()
        report = self._writers.stop()
        self._plan.heal()
        return ended or self.drain(), report

    def write(self) -> Ended | None:
        """Starts the pipeline and lets the writers write until enough happened; how it ended if it did.

        Enough: the scenario's number of changes since the log was first read, every fault fired, and the pipeline
        there (again).
        Whoever expects a halt waits for it as long.
        """
        self._pipeline.start()
        patience = _Patience(self._signs)
        begun: int | None = None
        enough_at: float | None = None
        while patience.left():
            self._clock.wait(_TURN_S)
            written = self._writers.report().row_changes
            if begun is None and self._points.wait(CAPTURE_BEGINS, 1, 0):
                begun = written
            changes = 0 if begun is None else written - begun
            self._plan.tick(changes)
            ended = self._supervise()
            if ended is not None:
                return ended
            over = self._writers.wait(0)  # clients may have nothing more to write
            enough = begun is not None and (over or changes >= self._scenario.workload.changes)
            if enough:
                self._writers.slow_down(_WAITING_RATE_PER_S)
            if enough and self._plan.all_fired() and self._reading():
                enough_at = enough_at or time.monotonic()
                if time.monotonic() >= enough_at + self._longer_s():
                    return None
        return None if begun is not None else Ended(STALLS, "capture did not begin in time")

    def drain(self) -> Ended:
        """Waits until the target holds everything committed by now, then stops the pipeline as Ctrl-C would."""
        goal = wiring.source_position(self._settings)
        patience = _Patience(self._signs)
        # A process that was started a moment ago, by a fault's healing, can't be asked to stop: it would be killed.
        while not (
            self._asked(lambda: wiring.applied_reaches(self._settings, goal))
            and self._dumped()
            and self._reading()
        ):
            ended = self._supervise()
            if ended is not None:
                return ended
            if not patience.left():
                return Ended(STALLS, "the target did not catch up in time")
            self._clock.wait(_TURN_S)
        self._pipeline.stop()
        exited = self._pipeline.exited()
        if exited is not None and exited.code == 0:
            return Ended(RESTARTS if self._excuse else RESUMES, self._excuse, drained=True)
        return (
            self._ended(exited)
            if exited is not None
            else Ended(STALLS, "it did not end when it was asked to")
        )

    def _reading(self) -> bool:
        """Returns whether the process that runs now has come so far as to read the log: whoever was killed must go
        on."""
        return self._points.reached_by(self._pipeline.pid, CAPTURE_BEGINS) > 0

    def _longer_s(self) -> float:
        """Returns how long to go on although enough was written and every fault fired."""
        if self._halting:
            return _HALT_S
        return 0.0 if self._plan.all_happened() else _EFFECT_S

    def _signs(self) -> tuple[int, int]:
        """Returns numbers that change while the pipeline does something: processes started, points announced."""
        return self._pipeline.starts, len(self._points.reached())

    def _supervise(self) -> Ended | None:
        """Starts a killed run again; how it ended if it ended otherwise. Looks away while a fault is being
        placed."""
        found: list[Ended] = []

        def look() -> None:
            exited = self._pipeline.exited()
            if exited is None:
                return
            if self._pipeline.starts < _MOST_STARTS and (exited.killed or self._excused(exited)):
                self._pipeline.start()
            else:
                found.append(self._ended(exited))

        self._plan.quiet(look)
        return found[0] if found else None

    def _excused(self, exited: Exit) -> bool:
        """Returns whether the pipeline is started again after a named error: where that is expected, once for each
        fault fired."""
        fired = sum(planned.fired_us is not None for planned in self._plan.faults)
        if self._scenario.expect.ending != RESTARTS or not exited.error or self._pipeline.starts > fired:
            return False
        self._excuse = exited.error
        return True

    @staticmethod
    def _ended(exited: Exit) -> Ended:
        if exited.error:
            return Ended(HALTS, exited.error)
        return Ended(STALLS, f"the process ended with exit code {exited.code} and named no error")

    def _dumped(self) -> bool:
        """Returns whether the target holds every table's whole dump."""

        def ask() -> bool:
            ledger = peek(self._settings)
            return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()

        return self._asked(ask)

    @staticmethod
    def _asked(question: Callable[[], bool]) -> bool:
        """The answer of a question to a server; False while a fault keeps the server from answering."""
        try:
            return question()
        except (MigratorError, psycopg.Error):
            return False
