"""One run from its first server to its bundle, whatever is played: the frame of all kinds of runs."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pymysql

from migrator.errors import MigratorError
from scenarios.play import bundle
from scenarios.play.run_result import FAILS, RunResult, verdict
from scenarios.scenario import Scenario
from scenarios.workload import Workload
from verify.history.result import CheckResult, Outcome

_FIRST_WRITES = 20
_FIRST_WRITES_S = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """The run to play.

    Attributes:
        scenario: the scenario.
        engine: of the source.
        seed: of workload, faults and observers.
        folder: of its bundle.
        command: the command that plays it again.
        mutant: broken variant to play it with, or "" for the product.
    """

    scenario: Scenario
    engine: str
    seed: int
    folder: Path
    command: str
    mutant: str = ""


@dataclass(slots=True)
class Findings:
    """The findings of a run so far.

    Attributes:
        ending, error, checks, counts: as in ``RunResult``.
        doubts: reasons why the record may prove nothing.
        versions: of the servers, by their names in the bundle.
        scratch: the folder of servers and project, once there is one.
    """

    ending: str = FAILS
    error: str = ""
    checks: tuple[CheckResult, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    scratch: Path | None = None


def played(run: Run, play: Callable[[ExitStack, Findings], None]) -> RunResult:
    """Plays a run and completes its bundle.

    Args:
        run: the run, whose bundle's folder is there.
        play: sets the stage and plays on it; the findings are complete as far as it came.

    A run that can't be played (no server, a fault that can't be placed) is *unknown*, with the error.
    """
    findings, began = Findings(), time.monotonic()
    with ExitStack() as stack:
        try:
            play(stack, findings)
        except (MigratorError, psycopg.Error, pymysql.err.Error) as error:
            findings.ending, findings.error = FAILS, f"{type(error).__name__}: {error}"
        found = verdict(
            run.scenario.expect, findings.ending, findings.error, findings.checks, findings.doubts
        )
        result = RunResult(
            run.scenario, run.engine, run.seed, findings.ending, findings.error, findings.checks, found.outcome,
            run.folder, round(time.monotonic() - began, 3), run.mutant, found.reason, findings.counts,
        )  # fmt: skip
        if result.outcome is not Outcome.HOLDS and findings.scratch is not None:
            _keep_evidence(findings.scratch, run.folder)
    bundle.write_result(result, findings.versions, run.command)
    return result


def begin_writing(writers: Workload) -> None:
    """Starts writers, and waits until the log has some of their writes."""
    writers.start()
    deadline = time.monotonic() + _FIRST_WRITES_S
    while writers.report().row_changes < _FIRST_WRITES and time.monotonic() < deadline:
        writers.wait(0.01)


def after_failure(stop: Callable[[], object]) -> None:
    """Stops something that an earlier failure has left running; that failure is the one to be told, not what
    follows.

    After a run that went well there is nothing to stop any more.
    """
    with contextlib.suppress(MigratorError, psycopg.Error, pymysql.err.Error):
        stop()


def _keep_evidence(scratch: Path, folder: Path) -> None:
    """Copies what helps to see why: segments as delivered, servers' logs, the project's file."""
    segments = scratch / bundle.SEGMENTS
    if segments.exists():
        shutil.copytree(segments, folder / bundle.SEGMENTS, dirs_exist_ok=True)
    for path in [*scratch.glob("*/*.log"), scratch / "project" / "migration.toml"]:
        if path.exists():
            shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
