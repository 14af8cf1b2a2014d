"""Plays a scenario on real servers: stage, recorders, pipeline, writers, faults; then history, verdicts, bundle."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from scenarios.faults import registry
from scenarios.faults.points import PointServer
from scenarios.pipeline import PipelineProcess
from scenarios.play import bundle
from scenarios.play.act import Act, Ended
from scenarios.play.cut_over import stage as two_sided
from scenarios.play.cut_over.play import CutOverPlay
from scenarios.play.fault_plan import APPLIED, CAPTURE_BEGINS, FaultPlan
from scenarios.play.played import Findings, Run, after_failure, begin_writing, played
from scenarios.play.refusal import refused, untouched
from scenarios.play.run_result import HALTS, MISSED, REFUSED, SILENT, RunResult, codes, doubts
from scenarios.play.stage import MIGRATION, Stage, set_up
from scenarios.play.verified import verified
from scenarios.recording.clock import RunClock
from scenarios.recording.deliveries import Deliveries
from scenarios.recording.recorders import Recorded, Recorders
from scenarios.row_writes import operations
from scenarios.scenario import Engine, Scenario
from scenarios.workload import Provenance, Workload, WriterReport
from scenarios.workloads.registry import workload
from scenarios.world import World
from verify.history.history import Description, History
from verify.history.judge import judge

__all__ = ["RunResult", "check", "run"]


def check(scenario: Scenario) -> None:
    """Checks that a scenario can be played as far as its words go. Raises ``ConfigError`` or ``MigratorError``."""
    workload(scenario.workload.name)
    for fault in scenario.faults:
        registry.check(fault)


def run(scenario: Scenario, engine: Engine, seed: int, out: Path, yaml: str, mutant: str = "") -> RunResult:
    """Plays one scenario and writes its bundle.

    Args:
        scenario: what to play.
        engine: of the source.
        seed: of workload, faults and observers.
        out: folder of bundles.
        yaml: the scenario's file, kept verbatim.
        mutant: broken variant to play it with, or "" for the product.

    A run that can't be played (no server, a fault that can't be placed) is *unknown*, with the error. Raises
    ``MigratorError`` where not even a bundle can be made.
    """
    check(scenario)
    command = bundle.command(scenario.name, engine, seed, mutant)
    folder = bundle.create(out, scenario.name, engine, seed, mutant, yaml)
    order = Run(scenario, engine, seed, folder, command, mutant)

    def play(stack: ExitStack, findings: Findings) -> None:
        _on_stage(stack, engine, order, findings)
        findings.doubts = doubts(scenario.expect, findings.counts)

    return played(order, play)


def _on_stage(stack: ExitStack, engine: Engine, order: Run, findings: Findings) -> None:
    """Sets the stage and plays on it; the findings are complete as far as it came."""
    if order.scenario.cut_over is None:
        stage = set_up(stack, order.scenario, engine, order.seed)
        findings.scratch = stage.folder
        findings.versions = bundle.versions(stage.source.direct, stage.target.direct)
        _Play(stack, stage, order, findings).play()
        return
    sides = two_sided.set_up(stack, order.scenario, engine, order.seed)
    findings.scratch = sides.there.folder
    findings.versions = bundle.versions(*sides.direct.values())
    play = CutOverPlay(stack, sides, order.scenario, order.seed, order.folder, order.mutant)
    play.play()
    findings.ending, findings.error = play.ending, play.error
    findings.checks, findings.counts = play.checks, play.counts


class _Play:
    """One run on its stage."""

    def __init__(self, stack: ExitStack, stage: Stage, order: Run, findings: Findings):
        self._stack = stack
        self._stage = stage
        self._order = order
        self._scenario = order.scenario
        self._folder = order.folder
        self._findings = findings
        self._clock = RunClock.started_now()
        self._points = stack.enter_context(
            PointServer(stage.folder / "steps.sock", announce=[CAPTURE_BEGINS, APPLIED])
        )
        self._pipeline = PipelineProcess(
            stage.config,
            order.folder / bundle.LOG,
            self._environment,
            order.mutant,
            stage.zookeeper is not None,
        )
        stack.callback(self._pipeline.close)
        world = World(
            stage.folder, stage.config, stage.source, stage.target, self._pipeline, self._clock.now_us,
            lambda pid: self._points.reached_by(pid, APPLIED), stage.zookeeper, stage.cluster,
        )  # fmt: skip
        self._recorders = Recorders(
            Recorded(
                stage.source.direct,
                stage.target.direct,
                MIGRATION,
                stage.settings.event_log(),
                stage.workload.tracked,
            ),
            stage.folder / bundle.SEGMENTS,
            self._clock,
            order.seed,
        )
        spec = order.scenario.workload
        self._writers = Workload(
            stage.source.direct,
            stage.workload.actions(spec),
            seed=order.seed,
            rate_per_s=spec.rate_per_s or None,
            threads=spec.sessions,
            provenance=Provenance(self._clock.now_us),
        )
        self._plan = FaultPlan(
            order.scenario.faults, world, self._points, self._start_writers, self._recorders.segments.keep
        )
        stack.callback(self._plan.close)

    def play(self) -> None:
        """Plays it and leaves what it found in ``findings``."""
        if self._scenario.expect.ending == REFUSED:
            self._play_refusal()
            return
        self._recorders.start()
        self._stack.callback(after_failure, self._recorders.stop)
        self._plan.prepare()
        self._stack.callback(after_failure, self._writers.stop)
        act = Act(
            self._scenario,
            self._stage.settings,
            self._pipeline,
            self._plan,
            self._points,
            self._writers,
        )
        self._end(*act.play())

    def _start_writers(self) -> None:
        """Starts the writers; holds the pipeline before its first record and chunk until the log has some writes."""
        if self._scenario.expect.ending == REFUSED:
            return
        begin_writing(self._writers)

    def _end(self, ended: Ended, report: WriterReport) -> None:
        findings = self._findings
        findings.ending, findings.error = ended.ending, ended.error
        self._pipeline.close()
        self._recorders.stop()
        delivered = self._recorders.delivered()
        history = self._history(ended, report, delivered)
        (self._folder / bundle.HISTORY).mkdir()
        history.save(self._folder / bundle.HISTORY)
        findings.counts = self._counts(report, delivered, history)
        findings.checks = judge(history, codes(self._scenario.expect, history.description.tables))
        if ended.drained and self._scenario.expect.verify:
            written = self._stage.settings.reports() / "verify.json"
            answer = self._scenario.expect.verify
            findings.checks += (verified(self._stage.config, written, self._stage.environment, answer),)

    def _history(self, ended: Ended, report: WriterReport, delivered: Deliveries) -> History:
        description = Description(
            scenario=self._scenario.name,
            engine=self._stage.source.direct.kind,
            seed=self._order.seed,
            tables=tuple(sides.table for sides in self._stage.workload.tracked),
            drained=ended.drained,
            halted=ended.error if ended.ending == HALTS else "",
            versions=self._findings.versions,
            command=self._order.command,
        )
        return self._recorders.history(description, operations(report.writes), self._plan.table(), delivered)

    def _counts(self, report: WriterReport, delivered: Deliveries, history: History) -> dict[str, int]:
        fired = sum(planned.fired for planned in self._plan.faults)
        return {
            "row changes": report.row_changes,
            "client transactions": report.commits,
            "log transactions": self._recorders.log.log.transactions,
            "segments": delivered.segments,
            MISSED: len(delivered.missing),
            "chunks": delivered.chunks,
            "chunk rows dropped": delivered.dropped_rows,
            "target commits": history.commits.num_rows,
            "observed snapshots": self._recorders.observers.snapshots,
            "faults fired": fired,
            SILENT: len(self._plan.faults) - fired,
            "processes": self._pipeline.starts,
            "epochs": delivered.epochs,
        }

    def _play_refusal(self) -> None:
        before = untouched(self._stage)
        self._plan.prepare()
        self._pipeline.start()
        found = refused(self._pipeline, lambda: self._points.wait(CAPTURE_BEGINS, 1, 0))
        self._findings.ending, self._findings.error = found
        self._pipeline.close()
        self._plan.heal()
        self._findings.checks = (before.compared(untouched(self._stage)),)
        self._findings.counts = {"faults fired": sum(planned.fired for planned in self._plan.faults)}

    def _environment(self) -> dict[str, str]:
        return {**self._stage.environment, **self._plan.environment()}
