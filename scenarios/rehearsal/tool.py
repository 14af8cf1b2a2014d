"""The ``migrator`` commands of a rehearsal, as processes of their own, as a user would start them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.run.steps import CRASH_VARIABLE
from scenarios.pipeline import PipelineProcess

_LONGEST_S = 900.0
_LOOK_S = 0.1


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

    def command(self, *words: str, module: str = "migrator") -> Said:
        """Runs a command to its end."""
        began = time.monotonic()
        options = ["--config", str(self.config)] if module == "migrator" else [str(self.config)]
        done = subprocess.run(
            [*python_m(module), *words, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if module == "migrator" else subprocess.PIPE,
            text=True,
            timeout=_LONGEST_S,
            env={**os.environ, CRASH_VARIABLE: ""},
            check=False,
        )
        return Said(
            done.returncode,
            done.stdout + (done.stderr or "" if done.returncode else ""),
            time.monotonic() - began,
        )

    def wait(self, holds: Callable[[], bool], what: str, limit_s: float = _LONGEST_S) -> None:
        """Waits for a condition beside the run. Raises ``MigratorError`` when the run ends, or it takes too long."""
        until = time.monotonic() + limit_s
        while not holds():
            ended = self.leader.exited()
            if ended is not None:
                raise MigratorError(
                    f"`migrator run` ended before {what}",
                    where=f"exit code {ended.code}",
                    cause=ended.error or "\n".join(self.leader.output().splitlines()[-8:]),
                    remedy="correct what it names, then rehearse again",
                )
            if time.monotonic() > until:
                raise MigratorError(
                    f"{what} did not come within {limit_s:g} s",
                    cause="\n".join(self.leader.output().splitlines()[-8:]),
                    remedy="correct what the last lines of the run name, then rehearse again",
                )
            time.sleep(_LOOK_S)
