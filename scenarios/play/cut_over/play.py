"""One cut-over on its stage: clients, observers, faults, the course; then the history and its verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pymysql

from migrator.errors import MigratorError
from scenarios.faults.points import PointServer
from scenarios.pipeline import PipelineProcess
from scenarios.play import bundle
from scenarios.play.cut_over.application import Clients, Observers, Reader
from scenarios.play.cut_over.course import Course
from scenarios.play.cut_over.stage import BothWays
from scenarios.play.fault_plan import APPLIED, CAPTURE_BEGINS, FaultPlan
from scenarios.play.run_result import HALTS, RESUMES, SILENT, STALLS
from scenarios.recording.clock import RunClock
from scenarios.scenario import NUMBERED, Scenario
from scenarios.workloads.counters import states
from scenarios.world import World
from verify.history.checks.verdict import Check
from verify.history.result import CheckResult, WitnessCase
from verify.two_sides import file
from verify.two_sides.checks import judge
from verify.two_sides.history import MOMENTS, NEW, OLD, Moment, State, TwoSides

STEPS = Check("STEPS", "each word of the operator ends as it must", "words")
_FENCED = "fence.raised"
_FIRST_WRITES, _FIRST_WRITES_S = 10, 10.0
_ERRORS = (MigratorError, psycopg.Error, pymysql.err.Error)


class CutOverPlay:
    """One run.

    Args:
        stack: ends everything.
        sides: the stage.
        scenario: with a cut-over.
        seed: of clients and faults.
        folder: of the bundle.
        mutant: broken variant of the run, or "".

    Attributes:
        ending, error: one of ``run_result``'s, with the run's named error.
        checks: verdicts.
        counts: of what was done and seen.
    """

    def __init__(
        self, stack: ExitStack, sides: BothWays, scenario: Scenario, seed: int, folder: Path, mutant: str
    ):
        assert scenario.cut_over is not None
        stage = sides.there
        self._sides, self._scenario, self._folder = sides, scenario, folder
        self._clock = RunClock.started_now()
        self._points = stack.enter_context(
            PointServer(stage.folder / "steps.sock", announce=[CAPTURE_BEGINS, APPLIED, _FENCED, *MOMENTS])
        )
        self._pipeline = PipelineProcess(stage.config, folder / bundle.LOG, self._environment, mutant)
        stack.callback(self._pipeline.close)
        world = World(
            stage.folder, stage.config, stage.source, stage.target, self._pipeline, self._clock.now_us,
            lambda pid: self._points.reached_by(pid, APPLIED),
        )  # fmt: skip
        self._clients = Clients(sides.applications, scenario.workload, seed, self._clock.now_us)
        self._observers = Observers(sides.direct, self._clock.now_us)
        self._reader = Reader(sides.applications, sides.pointed, self._clock.now_us)
        self._plan = FaultPlan(scenario.faults, world, self._points, self._begin_writing, lambda: None)
        stack.callback(self._plan.close)
        self._course = Course(
            sides, self._pipeline, self._plan, self._clients, folder / "commands.log", self._clock.now_us,
            lambda: self._points.wait(_FENCED, 1, 0), scenario.cut_over, scenario.expect.ending == HALTS,
        )  # fmt: skip
        self.ending, self.error = RESUMES, ""
        self.checks: tuple[CheckResult, ...] = ()
        self.counts: dict[str, int] = {}

    def play(self) -> None:
        """Plays it and judges what happened."""
        self._plan.prepare()
        self._observers.start()
        if self._course.wanted.reads_alone:
            self._reader.start()
        course, last = self._course, list[State]()
        try:
            course.play(self._scenario.workload.changes)
            self._plan.heal()
            self._clients.stop()
            if not course.stuck and not course.halted:
                course.drain()
                last = [
                    states.state(database, side, self._clock.now_us(), whole=True)
                    for side, database in self._sides.direct.items()
                    if not (finished := course.finished()) or side == finished
                ]
        except _ERRORS as error:
            self.ending, self.error = STALLS, str(error)
            self._clients.stop()
        finally:
            seen = self._observers.stop()
        if course.halted:
            self.ending, self.error = HALTS, course.halted
        self._pipeline.stop()
        self._judge(seen, last)

    def _begin_writing(self) -> None:
        """Holds the run before its first record until the log has some writes."""
        self._clients.start()
        self._clients.wait_for(_FIRST_WRITES, _FIRST_WRITES_S)

    def _judge(self, seen: Sequence[State], last: Sequence[State]) -> None:
        course = self._course
        history = TwoSides(
            writes=tuple(self._clients.written()),
            seen=tuple(seen),
            last=tuple(last),
            moments=self._moments(),
            stuck=tuple(course.stuck),
            looks=course.looks,
            numbered=bool(self._scenario.workload.options.get(NUMBERED)),
            reads=self._reader.stop(),
            pointed=tuple(course.pointed),
        )
        file.save(history, self._folder)
        rows = self._plan.table().to_pylist()
        (self._folder / bundle.FAULTS).write_text(json.dumps(rows) + "\n")
        cases = [WitnessCase(words, (), ()) for words in course.wrong]
        self.checks = (
            *(check for check in judge(history) if check.code in self._scenario.expect.checks),
            STEPS.verdict(course.steps, len(cases), cases, "no word was given"),
        )
        fired = sum(planned.fired for planned in self._plan.faults)
        self.counts = {
            "acknowledged on the old side": self._clients.acknowledged(OLD),
            "acknowledged on the new side": self._clients.acknowledged(NEW),
            "refused by a fence": self._clients.refused(),
            "states seen": len(seen),
            "steps": course.steps,
            "faults fired": fired,
            SILENT: len(self._plan.faults) - fired,
            "processes": self._pipeline.starts,
        }

    def _moments(self) -> tuple[Moment, ...]:
        """The leader's points and the operator's deeds on the history's clock."""
        began = self._clock.monotonic_us
        found = [
            Moment(int(one.at_s * 1e6) - began, MOMENTS[one.point])
            for one in self._points.reached()
            if one.point in MOMENTS
        ]
        return tuple(sorted([*found, *self._course.moments], key=lambda one: one.at))

    def _environment(self) -> dict[str, str]:
        return {**self._sides.there.environment, **self._plan.environment()}
