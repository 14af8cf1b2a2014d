"""Replays an incident: its history on throw-away servers, through the same run, judged by the mapping."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pymysql

from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.errors import ConfigError, MigratorError
from migrator.run.failure import Stopping
from migrator.wiring import parts as wiring
from migrator.wiring.gates.judge import sides as judged_sides
from migrator.wiring.target import peek
from scenarios.chaos import stage as staging
from scenarios.chaos.incident import structure
from scenarios.chaos.incident.failure import Expected, Failure, Judgement, Wrong, judged
from scenarios.chaos.incident.history import Change, History, Row, Transaction
from scenarios.chaos.incident.incident_file import Incident, versions
from scenarios.chaos.mapped import Mapped
from scenarios.chaos.snapshots import Seen
from scenarios.chaos.stage import Old, Stage
from scenarios.chaos.states import TableState
from scenarios.chaos.writes.changes import Change as Written
from scenarios.chaos.writes.changes import quoted
from scenarios.database import Connection
from scenarios.faults.session import SERVER_ERRORS
from scenarios.pipeline import PipelineProcess
from scenarios.rehearsal import copied
from scenarios.scenario import Scenario, WorkloadSpec
from verify.readers.engines import target_reader

_GROUPS = 20
"""The history is written in so many pieces at most; after each, the target catches up."""
_TURN_S = 0.1
_PATIENCE_S = 300.0
_WRONG = 200
_SCENARIO = Scenario("incident", "an incident's history", WorkloadSpec("project"))


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay.

    Attributes:
        judgement: whether the failure was seen again.
        reason: in words.
        found: what the replay found wrong.
        log: the text that the run printed.
    """

    judgement: Judgement
    reason: str
    found: Failure
    log: str = ""


def replay(
    incident: Incident, config: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Replayed:
    """Rebuilds the history, runs the migration over it, and compares.

    Args:
        incident: what to replay.
        config: a project whose mapping and revisions are taken instead of the incident's own.
        say: hears what happens.

    A replay that can't be played to its end is *unknown*. Raises ``ConfigError`` for a project that doesn't fit.
    """
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory("migrator-incident-"))
        project = copied.wanted(config or unpacked_project(incident, scratch / "given"))
        if project.kind("old") != incident.structure.kind:
            raise ConfigError(
                "the project doesn't fit the incident",
                where=f"source.kind: {project.kind('old')}",
                cause=f"the incident is of {incident.structure.kind}",
                remedy="replay it in the project from which it was collected, or without --project",
            )
        for line in other_versions(incident):
            say(line)
        log = scratch / "run.log"
        try:
            found = _Replay(stack, scratch, project, incident, say).played(log)
        except ConfigError:
            raise
        except (MigratorError, psycopg.Error, pymysql.err.Error) as error:
            return Replayed(Judgement.UNKNOWN, f"it couldn't be played: {error}", Failure(), _text(log))
        judgement, reason = judged(incident.failure, found)
        return Replayed(judgement, reason, found, _text(log))


def unpacked_project(incident: Incident, folder: Path) -> Path:
    """Writes the project's files of an incident; its settings file."""
    for name, text in incident.project.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "migration.toml"


def other_versions(incident: Incident) -> list[str]:
    """Versions that were otherwise where the incident was collected, in words."""
    here = versions()
    then: Mapping[str, str] = incident.facts.get("versions", {})
    return [
        f"{name} was {old}, and is {here[name]} here"
        for name, old in then.items()
        if here.get(name, old) != old
    ]


class _Replay:
    """One replay on servers of its own."""

    def __init__(
        self,
        stack: ExitStack,
        scratch: Path,
        project: copied.Wanted,
        incident: Incident,
        say: Callable[[str], None],
    ):
        self._stack, self._scratch, self._say = stack, scratch, say
        self._incident, self._clock = incident, Stopping()
        say("servers and schemas")
        self._stage = self._set_up(project)
        os.environ.setdefault("JAVA_HOME", str(java_home()))
        source, self._target = judged_sides(self._stage.settings)
        self._mapped = Mapped(
            self._stage.settings.mapping, source, self._target, self._stage.settings.name,
            scratch / "judged",
        )  # fmt: skip

    def _set_up(self, project: copied.Wanted) -> Stage:
        file = self._scratch / "old.sql"
        file.write_text(";\n\n".join([*structure.statements(self._incident.structure), ""]))
        return staging.set_up(self._stack, self._scratch, project, Old(str(file), number=0), _SCENARIO, 1)

    def played(self, log: Path) -> Failure:
        """Plays the history and tells what is wrong in the end. Raises ``MigratorError``, and drivers' errors."""
        history = self._incident.history
        old = self._stage.source.direct.connect()
        self._stack.callback(old.close)
        free = (
            "SET session_replication_role = replica"  # neither triggers nor foreign keys: a part of all rows is here
            if self._stage.source.direct.kind == "postgresql"
            else "SET SESSION foreign_key_checks = 0, unique_checks = 0"
        )
        old.cursor().execute(free)
        self._say(f"{sum(map(len, history.start.values()))} rows of the start")
        self._begin(old, history)
        pipeline = PipelineProcess(self._stage.config, log, dict)
        self._stack.callback(pipeline.close)
        pipeline.start()
        self._say("`migrator run`")
        halted = self._until(pipeline, self._dumped)
        groups = _groups(history.transactions)
        self._say(f"{len(history.transactions)} transactions in {len(groups)} pieces")
        for group in groups:
            if halted:
                break
            for transaction in group:
                self._write(old, transaction)
            goal = wiring.source_position(self._stage.settings)
            halted = self._until(pipeline, partial(wiring.applied_reaches, self._stage.settings, goal))
        pipeline.stop()
        if halted:
            return Failure(halted=halted)
        self._say("comparing with the mapping")
        return failure_of(self._states(), self._incident.failure.expected)

    def _begin(self, old: Connection, history: History) -> None:
        for table, rows in history.start.items():
            for row in rows:
                self._run(old, Written("insert", table, {}, self._taken(table, row)))
        old.commit()

    def _write(self, old: Connection, transaction: Transaction) -> None:
        for change in transaction.changes:
            self._change(old, change)
        old.commit()

    def _change(self, old: Connection, change: Change) -> None:
        table = change.table
        if change.before is None and change.after is None:
            old.cursor().execute(f"TRUNCATE TABLE {quoted(table)}")
            return
        before = self._taken(table, change.before or {})
        after = self._taken(table, change.after or {})
        key = {name: before[name] for name in self._incident.structure.tables[table].key if name in before}
        if change.before is None:
            self._run(old, Written("insert", table, {}, after))
        elif change.after is None:
            self._run(old, Written("delete", table, key, {}))
        else:
            self._run(old, Written("update", table, key, after))

    def _run(self, old: Connection, change: Written) -> None:
        try:
            old.cursor().execute(*change.statement(self._stage.source.direct.kind))
        except SERVER_ERRORS as error:
            raise MigratorError(
                "the throw-away server refuses a row of the incident",
                where=change.table,
                cause=str(error).strip(),
            ) from error

    def _taken(self, table: str, row: Row) -> dict[str, object]:
        kinds = {one.name: one.source_type for one in self._incident.structure.tables[table].columns}
        return {
            name: int(value, 2)
            if isinstance(value, str)
            and kinds[name].startswith("bit")
            and self._incident.structure.kind != "postgresql"
            else value
            for name, value in row.items()
            if name in kinds
        }

    def _dumped(self) -> bool:
        ledger = peek(self._stage.settings)
        return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()

    def _until(self, pipeline: PipelineProcess, reached: Callable[[], bool]) -> str:
        """Waits; the error with which the run stopped meanwhile, or "". Raises ``MigratorError`` when it takes too
        long."""
        ends = time.monotonic() + _PATIENCE_S
        while time.monotonic() < ends:
            exited = pipeline.exited()
            if exited is not None:
                if exited.error:
                    return exited.error
                raise MigratorError(f"the run ended with exit code {exited.code} and named no error")
            try:
                if reached():
                    return ""
            except (MigratorError, psycopg.Error):
                pass  # the ledger's table comes with the run
            self._clock.wait(_TURN_S)
        raise MigratorError(f"the target did not catch up in {_PATIENCE_S:g} s")

    def _states(self) -> Sequence[TableState]:
        folder = self._scratch / "target"
        folder.mkdir()
        names = [one.name for one in self._mapped.targets]
        found = target_reader(self._target, self._stage.settings.name).snapshot(names, folder)
        if found.ledger is None:
            raise MigratorError("the target has no ledger")
        return self._mapped.ended(Seen(1, found.ledger, found, folder))


def failure_of(states: Sequence[TableState], expected: Sequence[Expected] = ()) -> Failure:
    """The failure that the final states show. Raises ``MigratorError`` for an expectation of what isn't mapped."""
    wrong = list[Wrong]()
    for value in expected:
        wrong += value.unless(_cell(states, value))
    for state in states:
        for one in state.differences():
            columns: tuple[str, ...] = ()
            if one.status == "different" and one.expected is not None and one.found is not None:
                columns = tuple(
                    name
                    for name, want, have in zip(state.columns, one.expected, one.found, strict=True)
                    if want != have
                )
            key: Mapping[str, str | None] = {
                state.columns[place]: value for place, value in zip(state.key, one.key, strict=True)
            }
            wrong.append(Wrong(state.target, one.status, columns, key))
    checked = sum(max(len(state.expected), len(state.found)) for state in states)
    return Failure(
        tuple(wrong[:_WRONG]), len(wrong), checked=checked, tables=tuple(state.target for state in states)
    )


def _cell(states: Sequence[TableState], sought: Expected) -> str | None:
    """The value that is there; empty where the row isn't."""
    state = next((one for one in states if one.target == sought.target), None)
    if state is None or sought.column not in state.columns:
        raise MigratorError(
            "the mapping doesn't fill what is expected", where=f"{sought.target}.{sought.column}"
        )
    key = tuple(sought.key.get(state.columns[place]) for place in state.key)
    row = state.by_key(state.found).get(key)
    return row[state.columns.index(sought.column)] if row else ""


def _groups(transactions: Sequence[Transaction]) -> list[Sequence[Transaction]]:
    size = max(-(-len(transactions) // _GROUPS), 1)
    return [transactions[begin : begin + size] for begin in range(0, len(transactions), size)]


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
