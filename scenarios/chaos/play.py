"""Plays one run of a project under hazards: stage, recorders, pipeline, clients, faults; then the verdicts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.wiring.gates.judge import sides as judged_sides
from scenarios.chaos import stage as staging
from scenarios.chaos.hazards import chosen
from scenarios.chaos.incident import of_run
from scenarios.chaos.incident.failure import Failure
from scenarios.chaos.incident.replay import failure_of
from scenarios.chaos.judge import Facts, judged, looked_at
from scenarios.chaos.mapped import Mapped
from scenarios.chaos.query_log import recording as query_logs
from scenarios.chaos.query_log.player import Player
from scenarios.chaos.query_log.recording import Recording
from scenarios.chaos.shadow import Shadow
from scenarios.chaos.snapshots import Snapshots
from scenarios.chaos.stage import Old, Stage
from scenarios.chaos.writes.plain_rows import MOST, plain_rows
from scenarios.chaos.writes.rows_known import shared_out
from scenarios.chaos.writes.stream import Stream
from scenarios.chaos.writes.weights import Weights
from scenarios.chaos.writes.writers import Writers
from scenarios.faults.points import PointServer
from scenarios.pipeline import PipelineProcess
from scenarios.play import bundle
from scenarios.play.act import Act, Ended
from scenarios.play.fault_plan import APPLIED, CAPTURE_BEGINS, FaultPlan
from scenarios.play.pairs import scenario_yaml
from scenarios.play.played import Findings, Run, after_failure, begin_writing, played
from scenarios.play.run_result import FAILS, HALTS, SILENT, RunResult
from scenarios.recording.clock import RunClock
from scenarios.recording.whole_rows import ROW_RECORDERS
from scenarios.rehearsal import copied
from scenarios.scenario import Scenario, WorkloadSpec
from scenarios.workload import WriterReport
from scenarios.world import World
from verify.history.result import Outcome

CHANGES = "transactions.jsonl"
"""File of a bundle: what the clients wrote, a transaction a line."""


@dataclass(frozen=True)
class Order:
    """The run to make.

    Attributes:
        config: the user's project.
        old: its old side.
        under: names of hazards.
        changes: row changes until the clients stop.
        clients: how many write.
        rate_per_s: row changes per second over all clients.
        seed: of writers, faults and snapshots.
        weights: of the writers.
        query_log: a captured log that the clients do again, until its end; None where they draw what they write.
        compared: how many snapshots are compared at most.
        compare_s: how long comparing may take, in seconds.
        out: folder of bundles.
        tamper: changes the target behind the migration's back, for tests of the judge.
    """

    config: Path
    old: Old
    under: tuple[str, ...] = ()
    changes: int = 1000
    clients: int = 3
    rate_per_s: float = 100.0
    seed: int = 1
    weights: Weights = field(default_factory=Weights)
    query_log: Path | None = None
    compared: int = 60
    compare_s: float = 120.0
    out: Path = Path(".scenarios")
    tamper: Callable[[Stage], None] = lambda _: None


def run(order: Order, say: Callable[[str], None] = lambda _: None) -> RunResult:
    """Plays it and writes its bundle.

    A run that can't be played is *unknown*, with the error. Raises ``MigratorError`` where not even a bundle can be
    made, and ``ConfigError`` for a project that can't be used.
    """
    project = copied.wanted(order.config)
    engine = project.kind("old")
    recording = None
    if order.query_log is not None:
        recording = query_logs.read(order.query_log, engine, project.text("source", "database"))
    scenario, folder = _begun(order, engine)

    def play(stack: ExitStack, findings: Findings) -> None:
        findings.scratch = stack.enter_context(scratch_directory("migrator-chaos-"))
        say("servers, schemas, rows, logins")
        stage = staging.set_up(stack, findings.scratch, project, order.old, scenario, order.seed)
        for note in stage.notes:
            say(note)
        findings.versions = bundle.versions(stage.source.direct, stage.target.direct)
        _Play(stack, stage, _Task(order, scenario, folder, say, recording), findings).play()

    return played(Run(scenario, engine, order.seed, folder, _command(order)), play)


def not_run(order: Order, why: str) -> RunResult:
    """The result of a run that nobody makes: *unknown*, with its command. Raises ``ConfigError``."""
    engine = copied.wanted(order.config).kind("old")
    scenario, folder = _begun(order, engine)
    result = RunResult(scenario, engine, order.seed, FAILS, "", (), Outcome.UNKNOWN, folder, 0.0, reason=why)
    bundle.write_result(result, {}, _command(order))
    return result


def _begun(order: Order, engine: str) -> tuple[Scenario, Path]:
    """The scenario of a run, and the folder of its bundle."""
    scenario = replace(
        chosen(order.under, engine),
        workload=WorkloadSpec("project", 0, order.clients, order.changes, order.rate_per_s),
    )
    return scenario, bundle.create(order.out, scenario.name, engine, order.seed, "", scenario_yaml(scenario))


def _command(order: Order) -> str:
    under = f" --hazard {','.join(order.under)}" if order.under else ""
    log = f" --query-log {order.query_log}" if order.query_log is not None else ""
    return (
        f"migrator scenario run --project {order.config.parent} --old-schema {order.old.schema}{under}{log}"
        f" --changes {order.changes} --seed {order.seed} --clients {order.clients} --rows {order.old.number}"
        f"{_sample(order.old.rows)}"
    )


def _sample(rows: Mapping[str, Path]) -> str:
    """The option for rows of files: the file, or the folder of several."""
    files = list(rows.values())
    return f" --sample {files[0] if len(files) == 1 else files[0].parent}" if files else ""


@dataclass(frozen=True, slots=True)
class _Task:
    """The order, its hazards in one scenario, the bundle's folder, who hears what happens, the log to do again."""

    order: Order
    scenario: Scenario
    folder: Path
    say: Callable[[str], None]
    recording: Recording | None


class _Play:
    """One run on its stage."""

    def __init__(self, stack: ExitStack, stage: Stage, task: _Task, findings: Findings):
        self._stack, self._stage, self._order, self._scenario = stack, stage, task.order, task.scenario
        self._folder, self._findings, self._say = task.folder, findings, task.say
        order, folder = task.order, task.folder
        clock = RunClock.started_now()
        self._points = stack.enter_context(
            PointServer(stage.folder / "steps.sock", announce=[CAPTURE_BEGINS, APPLIED])
        )
        self._pipeline = PipelineProcess(stage.config, folder / bundle.LOG, self._environment)
        stack.callback(self._pipeline.close)
        world = World(
            stage.folder, stage.config, stage.source, stage.target, self._pipeline, clock.now_us,
            lambda pid: self._points.reached_by(pid, APPLIED),
        )  # fmt: skip
        self._source, self._target = judged_sides(stage.settings)
        os.environ.setdefault("JAVA_HOME", str(java_home()))
        self._mapped = Mapped(
            stage.settings.mapping, self._source, self._target, stage.settings.name,
            stage.folder / "judged",
        )  # fmt: skip
        names = [target.name for target in self._mapped.targets]
        self._snapshots = Snapshots(
            self._target, stage.settings.name, names, stage.folder / "snapshots", order.seed
        )
        keyed = [name for name, table in stage.tables.items() if table.key]
        self._log = ROW_RECORDERS[stage.source.direct.kind](stage.source.direct, keyed, clock)
        self._writers = self._clients(task.recording, keyed)
        self._plan = FaultPlan(
            task.scenario.faults,
            world,
            self._points,
            lambda: begin_writing(self._writers),
            self._snapshots.take,
        )
        stack.callback(self._plan.close)

    def play(self) -> None:
        """Plays it and leaves what it found in ``findings``."""
        self._log.start()
        self._stack.callback(after_failure, self._log.stop)
        self._snapshots.start()
        self._stack.callback(after_failure, self._snapshots.stop)
        self._plan.prepare()
        self._stack.callback(after_failure, self._writers.stop)
        self._say(f"`migrator run` under {', '.join(self._order.under) or 'no hazard'}")
        act = Act(
            self._scenario,
            self._stage.settings,
            self._pipeline,
            self._plan,
            self._points,
            self._writers,
        )
        self._end(*act.play())

    def _end(self, ended: Ended, report: WriterReport) -> None:
        findings, stage = self._findings, self._stage
        findings.ending, findings.error = ended.ending, ended.error
        self._pipeline.close()
        self._order.tamper(stage)
        self._snapshots.stop()
        self._log.stop()
        self._keep()
        transactions = self._log.rows.transactions
        self._say(
            f"judging: {len(self._snapshots.seen)} snapshots, {len(transactions)} transactions in the log"
        )
        read = dict.fromkeys(name for target in self._mapped.targets for name in target.sources)
        start = of_run.rows_of(stage.start, stage.tables, list(read))  # the shadow changes them
        shadow = Shadow(stage.start, stage.tables, transactions)
        try:
            last = self._snapshots.seen[-1:]
            final = self._mapped.ended(last[0]) if last and ended.drained else []
            found = looked_at(
                self._snapshots.seen, lambda one: self._mapped.at(one, shadow), self._order.compared,
                self._order.compare_s,
            )  # fmt: skip
            shadow.upto_end()
            facts = self._facts(ended, report, shadow.unlike(stage.source.direct))
            findings.checks = judged(facts, self._snapshots.seen, found, final)
        finally:
            shadow.close()
        findings.counts = self._counts(report)
        halted = ended.error if ended.ending == HALTS else ""
        failure = Failure(halted=halted) if halted else failure_of(final)
        if failure.anything():
            self._incident(start, failure)

    def _incident(self, start: of_run.Rows, failure: Failure) -> None:
        """Leaves the failure in the bundle as an incident, which can be made smaller."""
        stage = self._stage
        history = of_run.history_of(start, stage.tables, self._log.rows.transactions)
        why = of_run.kept(
            self._folder,
            lambda: of_run.of_run(
                copied.wanted(self._order.config), self._source, stage.tables, history, failure
            ),
        )
        if why:
            self._say(f"no incident: {why}")

    def _facts(self, ended: Ended, report: WriterReport, differs: list[str]) -> Facts:
        return Facts(
            drained=ended.drained,
            halted=ended.error if ended.ending == HALTS else "",
            log=self._log.rows.transactions,
            acknowledged=self._writers.acknowledged,
            ends={
                "ok": report.commits,
                "failed": sum(one.outcome == "failed" and one.name != "connect" for one in report.operations),
                "rolled back": report.rollbacks,
            },
            replay_differs=differs,
            targets=[target.name for target in self._mapped.targets],
            silent=[planned.spec.do for planned in self._plan.faults if not planned.fired],
            left_out=self._writers.left_out(),
        )

    def _counts(self, report: WriterReport) -> dict[str, int]:
        fired = sum(planned.fired for planned in self._plan.faults)
        return {
            "row changes": report.row_changes,
            "client transactions": report.commits,
            "refused": sum(one.outcome == "failed" and one.name != "connect" for one in report.operations),
            "log transactions": len(self._log.rows.transactions),
            "observed snapshots": len(self._snapshots.seen),
            "faults fired": fired,
            SILENT: len(self._plan.faults) - fired,
            "processes": self._pipeline.starts,
            **self._writers.counts(),
        }

    def _keep(self) -> None:
        lines = [
            json.dumps({"client": client, "end": end, "transaction": json.loads(transaction.line())})
            for client, transaction, end in self._writers.done
        ]
        (self._folder / CHANGES).write_text("\n".join([*lines, ""]))
        (self._folder / bundle.FAULTS).write_text(json.dumps(self._plan.table().to_pylist()) + "\n")

    def _clients(self, recording: Recording | None, keyed: Sequence[str]) -> Player | Writers:
        order, tables, old = self._order, self._stage.tables, self._stage.source.direct
        application = staging.application(self._stage)
        if recording is not None:
            return Player(application, recording, order.clients, keyed, order.rate_per_s)
        rows = {name: plain_rows(old, table, MOST) for name, table in tables.items()}
        known = shared_out(tables, rows, order.clients, order.seed)
        streams = [
            Stream(one, client, order.clients, order.seed, order.weights) for client, one in enumerate(known)
        ]
        return Writers(application, streams, order.seed, order.rate_per_s)

    def _environment(self) -> Mapping[str, str]:
        return self._plan.environment()
