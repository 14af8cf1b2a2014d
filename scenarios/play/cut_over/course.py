"""The course of a cut-over: dump, plan, an operator's words one after the other, writes behind each, the end."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pymysql

from migrator.config.project import Settings
from migrator.errors import ConnectionFailed, MigratorError
from migrator.model.cutover.record import Phase, Record
from migrator.model.position import Position
from migrator.own_modules import python_m
from migrator.wiring import parts as wiring
from migrator.wiring.cutover import book
from migrator.wiring.target import peek
from scenarios.pipeline import PipelineProcess
from scenarios.play.cut_over.application import Clients
from scenarios.play.cut_over.stage import QUERIES, BothWays
from scenarios.play.fault_plan import FaultPlan
from scenarios.scenario import CutOver, Step
from verify.two_sides.history import NEW, OLD, OPENED_BY_HAND, REOPENS, Moment, Pointed, across

_TURN_S = 0.2
_LONG_S = 400.0
"""The longest wait for anything that needs Spark to start: on a very busy machine that takes minutes."""
_SHORT_S = 60.0
_WRITES_S = 90.0
"""The longest wait for writes on the side that is open by the record."""
_WAIT_S = "300"
_NOBODY_WAIT_S = "2"
"""Seconds that a word waits where nobody is expected to carry it out."""
_CODES = {"opens": 0, "undone": 1, "refused": 2, "waits": 3, "stays": 0}
_BY_HAND = "-- opens the {side} side by hand"


class Stopped(MigratorError):
    """The run ended by itself, with its error or without one, or something took too long."""


@dataclass
class Course:
    """Plays the steps; what came of them is in its attributes.

    Attributes:
        wanted: what is to be played.
        halts: whether the run must end by itself, with an error.
        fenced: tells whether any fence was ever up; the first is the new side's.
        wrong: steps that ended otherwise than they must, in words.
        steps: how many were taken.
        stuck, looks: see ``TwoSides``.
        moments: what an operator has done besides the leader.
        drained: whether both ways have carried everything across in the end.
        halted: the error with which the run ended by itself; empty: it didn't.
        pointed: where reads go behind each word, where they are pointed alone.
    """

    sides: BothWays
    pipeline: PipelineProcess
    plan: FaultPlan
    clients: Clients
    log: Path
    now_us: Callable[[], int]
    fenced: Callable[[], bool]
    wanted: CutOver
    halts: bool = False
    wrong: list[str] = field(default_factory=list)
    steps: int = 0
    stuck: list[str] = field(default_factory=list)
    looks: int = 0
    moments: list[Moment] = field(default_factory=list)
    drained: bool = False
    halted: str = ""
    pointed: list[Pointed] = field(default_factory=list)
    _planned: str = ""
    _clock: threading.Event = field(default_factory=threading.Event)

    def play(self, changes: int) -> None:
        """All of it. Raises ``Stopped``, and what a fault raises."""
        there = self.sides.there.settings
        self.pipeline.start()
        self._await(lambda: _dumped(there), "the dump's end")
        if self.wanted.steps[0].ask != "plan":
            self._step(Step("plan", "stays"), 0)
        for step in self.wanted.steps:
            if self.stuck or self.wrong:
                return
            self._step(step, changes)

    def drain(self) -> None:
        """Waits until the ways that are left have carried across what is committed, the clients being at rest."""
        for one in self._ways():
            limit_s = (
                _SHORT_S if self.wrong else _LONG_S
            )  # what went wrong is known, and may keep a way waiting
            reached = partial(_reached, one, wiring.source_position(one))
            self._await(reached, "both ways come to their end", limit_s)
        self.drained = True

    def _ways(self) -> list[Settings]:
        finished = self.finished()
        if (
            finished == NEW
        ):  # all was carried there; what the old side has taken since passed its fence, and waits
            return []
        back = self._record() is not None and not finished
        return [self.sides.there.settings, *([self.sides.back] if back else [])]

    def finished(self) -> str:
        """Returns the side that is the only one from now on; empty while there are two."""
        record = self._record()
        return str(record.open_side) if record is not None and record.phase is Phase.FINISHED else ""

    # -- steps

    def _step(self, step: Step, changes: int) -> None:
        self.steps += 1
        asked = self.now_us()
        if step.ends == "waits" and self.halts:
            self._until(lambda: bool(self.halted), "the run's end by name")
        code, said = self._say(step)
        if step.ends == "waits" and not self.halts:
            self._await(self.plan.all_fired, "the fault for which nobody carries it out")
        record = self._record()
        if record is not None:
            said += f"\nthe record says: {record.reason}"
            if self.wanted.reads_alone:
                self.pointed.append(Pointed(asked, self.now_us(), str(record.reads)))
        if code != _CODES[step.ends] or not re.search(step.said, said):
            words = " ".join(said.split())[-600:]
            self.wrong.append(
                f"{step.ask} must end as {step.ends!r} ({step.said}); exit code {code}: {words}"
            )
        if step.ask == "plan" and code == 0 and not self.wrong:
            self._begins(OLD if record is None else str(record.open_side))
        if changes and step.ends != "waits" and not self.wrong:
            self._written(changes)

    def _begins(self, open_side: str) -> None:
        """Waits until the way back runs, behind a plan, with everybody asking for what is fenced now."""
        self._await(self.fenced, "the fence of the new side")
        closed = across(open_side)
        before = self.clients.acknowledged(closed)
        self.clients.start_on_new_side()

        def passed() -> bool:
            return self.clients.acknowledged(closed) > before

        self._await(lambda: _applied(self.sides.back) or passed(), "the way back's beginning")
        if passed():  # what passed a fence waits, and the way back with it, for good
            self.wrong.append(f"somebody has written on the {closed} side behind its fence")

    def _say(self, step: Step) -> tuple[int, str]:
        """Gives an operator's word; the exit code of the tool, and its words."""
        if step.ask == "open the old side by hand":
            self._open_by_hand()
            return self._tool("cutover", "opened", OLD)
        if step.ask == "plan":
            code, said = self._tool("cutover", "plan", "--accept")
            self._planned = self._planned or said
            return code, said
        if step.ask == "dual read":
            return self._tool("dual-read", "run", str(self.sides.there.config.parent / QUERIES))
        if step.ask == "abort":
            self.moments.append(Moment(self.now_us(), REOPENS))
        wait = ["--wait", _NOBODY_WAIT_S if step.ends == "waits" else _WAIT_S]
        if step.ask.startswith("reads to "):
            return self._tool("cutover", "reads", "--to", step.ask.removeprefix("reads to "), *wait)
        return self._tool("cutover", step.ask, *wait)

    def _written(self, changes: int) -> None:
        """Waits for writes on the side that is open by the record."""
        record = self._record()
        side = OLD if record is None else str(record.open_side)
        goal = self.clients.acknowledged(side) + changes
        self.looks += 1
        until = time.monotonic() + _WRITES_S
        while self.clients.acknowledged(side) < goal:
            self._turn()
            if time.monotonic() > until:
                phase = "" if record is None else f", phase {record.phase}"
                self.stuck.append(f"nobody could write on the {side} side for {_WRITES_S:g} s{phase}")
                return

    def _open_by_hand(self) -> None:
        """Runs the SQL that the plan has printed."""
        block = self._planned.split(_BY_HAND.format(side=OLD))[1].split("\n", 1)[1].split("\n\n")[0]
        self.moments.append(Moment(self.now_us(), OPENED_BY_HAND, OLD))
        database = self.sides.direct[OLD]
        connection = database.connect(autocommit=True)
        try:
            cursor = connection.cursor()
            for statement in [block] if database.kind == "postgresql" else statements(block):
                cursor.execute(statement)
        finally:
            connection.close()

    def _tool(self, *words: str) -> tuple[int, str]:
        """A command as a user gives it, the run being looked after meanwhile; its exit code and its words."""
        there = self.sides.there
        with self.log.open("a+b") as log:
            log.write(f"--- migrator {' '.join(words)}\n".encode())
            log.flush()
            begins_at = log.tell()
            process = subprocess.Popen(
                [*python_m("migrator"), *words, "--config", str(there.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **there.environment},
            )
            until = time.monotonic() + _LONG_S
            try:
                while process.poll() is None:
                    self._turn()
                    if time.monotonic() > until:
                        raise Stopped(f"`{' '.join(words[:2])}` took more than {_LONG_S:g} s")
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            log.seek(begins_at)
            return process.returncode, log.read().decode(errors="replace")

    # -- the run meanwhile

    def _await(self, holds: Callable[[], bool], what: str, limit_s: float = _LONG_S) -> None:
        """Waits for something that the run does."""
        self._until(lambda: holds() or bool(self.halted), what, limit_s)
        if self.halted:
            raise Stopped(f"the run ended before {what}", cause=self.halted)

    def _until(self, holds: Callable[[], bool], what: str, limit_s: float = _LONG_S) -> None:
        until = time.monotonic() + limit_s
        while not holds():
            self._turn()
            if time.monotonic() > until:
                raise Stopped(f"{what} took more than {limit_s:g} s")

    def _turn(self) -> None:
        """Looks after faults, and after a run that was killed."""
        self._clock.wait(_TURN_S)
        self.plan.tick(0)  # a fault of a cut-over fires at a point, or is there from the start
        self.plan.quiet(self._supervise)

    def _supervise(self) -> None:
        exited = self.pipeline.exited()
        if exited is None or self.halted:
            return
        if exited.killed:
            self.pipeline.start()
        else:
            self.halted = exited.error or f"exit code {exited.code}, and no error was named"

    def _record(self) -> Record | None:
        """Reads the record, which is on a side that may be lost for a while."""
        kept = book(self.sides.there.settings)
        until = time.monotonic() + _SHORT_S
        try:
            while True:
                try:
                    return kept.read()
                except ConnectionFailed:
                    if time.monotonic() > until:
                        raise
                    self._turn()
        finally:
            kept.close()


def statements(block: str) -> list[str]:
    """The statements of a block, for a driver that takes one at a time; each ends with its line."""
    return [one for one in re.split(r";\n", f"{block.strip()}\n") if one.strip()]


def _dumped(settings: Settings) -> bool:
    with suppress(MigratorError, psycopg.Error, pymysql.err.Error):
        ledger = peek(settings)
        return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()
    return False


def _applied(settings: Settings) -> bool:
    with suppress(MigratorError, psycopg.Error, pymysql.err.Error):
        ledger = peek(settings)
        return ledger is not None and ledger.checkpoint is not None
    return False


def _reached(settings: Settings, goal: Position) -> bool:
    with suppress(MigratorError, psycopg.Error, pymysql.err.Error):
        return wiring.applied_reaches(settings, goal)
    return False
