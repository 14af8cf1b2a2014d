"""The ``migrator`` commands of a rehearsal, as processes of their own, as a user would start them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.run.steps import CRASH_VARIABLE
from scenarios.pipeline import PipelineProcess

PATIENCE_S = 900.0
"""The longest wait for what needs Spark to start, a switch too: on a busy machine that takes minutes."""
_LOOK_S = 0.1
_LINES = 8


@dataclass(frozen=True)
class Said:
    """The end of a command: exit code, all that it printed, seconds."""

    code: int
    text: str
    took_s: float


class Tool:
    """Runs commands on one project, and the run that leads it.

    Args:
        config: the project's file.
        log: gets the output of the run that leads.
    """

    def __init__(self, config: Path, log: Path):
        self.config = config
        self._crash_at = ""
        self.leader = PipelineProcess(config, log, self._environment)

    def _environment(self) -> Mapping[str, str]:
        return {CRASH_VARIABLE: self._crash_at}

    def lead(self, crash_at: str = "") -> None:
        """Starts the run that leads; it kills itself at that point."""
        self._crash_at = crash_at
        self.leader.start()

    def document(self, *words: str) -> dict[str, Any]:
        """The JSON that a command prints. Raises ``MigratorError`` where it ends otherwise than with 0."""
        done = self.command(*words, "--json", apart=True)
        if done.code:
            raise MigratorError(
                f"`migrator {' '.join(words)}` can't be read",
                where=f"exit code {done.code}",
                cause=done.text.strip(),
                remedy="correct what is named, then rehearse again",
            )
        found: dict[str, Any] = json.loads(done.text)
        return found

    def command(self, *words: str, module: str = "migrator", apart: bool = False) -> Said:
        """Runs a command to its end; ``apart``: what it says on standard error is left out where it ends with 0."""
        began = time.monotonic()
        options = ["--config", str(self.config)] if module == "migrator" else [str(self.config)]
        done = subprocess.run(
            [*python_m(module), *words, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S + 60,
            env={**os.environ, CRASH_VARIABLE: ""},
            check=False,
        )
        return Said(
            done.returncode,
            done.stdout + (done.stderr or "" if done.returncode else ""),
            time.monotonic() - began,
        )

    def last_lines(self) -> str:
        """The last lines of the run that leads."""
        return "\n".join(self.leader.output().splitlines()[-_LINES:])

    def wait(self, holds: Callable[[], bool], what: str, limit_s: float = PATIENCE_S) -> None:
        """Waits for a condition beside the run. Raises ``MigratorError`` when the run ends, or it takes too long."""
        until = time.monotonic() + limit_s
        while not holds():
            ended = self.leader.exited()
            if ended is not None:
                raise MigratorError(
                    f"`migrator run` ended before {what}",
                    where=f"exit code {ended.code}",
                    cause=ended.error or self.last_lines(),
                    remedy="correct what it names, then rehearse again",
                )
            if time.monotonic() > until:
                raise MigratorError(
                    f"{what} did not come within {limit_s:g} s",
                    cause=self.last_lines(),
                    remedy="correct what the last lines of the run name, then rehearse again",
                )
            time.sleep(_LOOK_S)
