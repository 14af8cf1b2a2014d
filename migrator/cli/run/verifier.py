"""The verifier beside a run: a process of its own, so that whatever happens to it can't hurt the run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import join

from migrator.errors import VerifyError
from migrator.own_modules import python_m
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from verify.tables.coverage import Coverage, read_coverage, write_coverage

_LOOK_S = 1.0
_AGAIN_S = 30.0
_STOP_S = 10.0
_ABOUT = "verification"


def command(config: Path, rate: float) -> list[str]:
    """Returns the command that the verifier's process runs."""
    options = ["--config", str(config), "--continuous", "--rate", f"{rate:g}", "--master", "local[1]"]
    return [*python_m("migrator"), "verify", *options]


class Verifier:
    """Starts the process, starts it again when it ends, and turns what it finds into warnings of the run.

    Args:
        arguments: of the process.
        reports: where it keeps its coverage file.
        log: gets what it prints.
        progress: takes the warnings.
        repair: how a command begins that repairs what was found.
        again_s: rest before it is started again.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        reports: Path,
        log: Path,
        progress: Progress,
        repair: Sequence[str],
        again_s: float = _AGAIN_S,
    ):
        self._arguments = list(arguments)
        self._reports = reports
        self._log = log
        self._progress = progress
        self._repair = tuple(repair)
        self._again_s = again_s

    def run(self, stopping: Stopping) -> None:
        """Watches the verifier until a stop is requested. Raises nothing that could end the run."""
        while not stopping.requested():
            try:
                self._watch(stopping)
            except OSError as error:
                self._failed(f"it can't be started: {error}")
            stopping.wait(self._again_s)

    def _watch(self, stopping: Stopping) -> None:
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as log:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for the run, which then ends it
            )
        try:
            while process.poll() is None and not stopping.wait(_LOOK_S):
                self._warn()
        finally:
            ended = process.poll()
            _end(process)
        if ended is not None and not stopping.wait(_LOOK_S):  # who ends us may have ended it a moment before
            self._failed(f"its process ended with code {ended}, see {self._log}")

    def _warn(self) -> None:
        with suppress(VerifyError):
            found = read_coverage(self._reports)
            self._progress.warn(_ABOUT, *(warnings(found, self._repair) if found is not None else ()))

    def _failed(self, problem: str) -> None:
        known = Coverage()
        with suppress(VerifyError):
            known = read_coverage(self._reports) or known
        with suppress(OSError):
            write_coverage(replace(known, problem=problem, at_us=int(time.time() * 1e6)), self._reports)
        self._progress.warn(_ABOUT, f"the verifier doesn't work: {problem}", *warnings(known, self._repair))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def warnings(coverage: Coverage, repair: Sequence[str]) -> list[str]:
    """Returns what an operator should look at. ``repair``: the first words of a command that repairs it."""
    found = [
        f"{table.table}: {table.differing:,} keys of the target differ, written by someone else or lost;"
        f" see {table.report}/verify.html, then `{join([*repair, '--from', f'{table.report}/verify.json'])}`"
        for table in coverage.tables
        if table.verdict == "different"
    ]
    return [*found, *([f"the verifier doesn't work: {coverage.problem}"] if coverage.problem else [])]


_FIRST = {"different": -2, "unknown": -1, "equal": 1}


def coverage_lines(coverage: Coverage, age: Callable[[int], str]) -> list[str]:
    """Coverage in words, for ``status``: what differs comes first, what is equal last."""
    lines = []
    for table in sorted(coverage.tables, key=lambda one: _FIRST.get(one.verdict, 0)):
        if not table.at_us:
            lines.append(f"{table.table}: not verified yet{f' ({table.reason})' if table.reason else ''}")
            continue
        lines.append(
            f"{table.table}: {table.verdict}, {table.key_share():.1%} of {table.keys + table.open_keys:,} keys,"
            f" {table.columns} of {table.all_columns} columns, {age(table.at_us)}"
            + (f"; {table.differing:,} differ, see {table.report}" if table.differing else "")
        )
    if coverage.problem:
        lines.append(f"the verifier doesn't work: {coverage.problem} ({age(coverage.at_us)})")
    return lines
