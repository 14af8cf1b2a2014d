"""pgbench as writers in a process of their own: what they do costs the measured one no time of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.workloads.program import as_environment, as_options, find

_LONGEST_S = 86_400


def pgbench(*options: str) -> list[str]:
    """The command of two sessions with these options."""
    return [find("pgbench", "pip install 'dbmigrator[embedded]'"), "--no-vacuum", "--client=2", *options]


class RunningPgbench:
    """A pgbench that writes until it is ended, and the folder of its scripts."""

    def __init__(self, database: Database):
        self._database = database
        self._process: subprocess.Popen[str] | None = None
        self._stack = ExitStack()

    def folder(self) -> Path:
        """Makes a folder that is removed in the end."""
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="migrator-pgbench-")))

    def start(self, command: Sequence[str], rate_per_s: float) -> None:
        """Begins so many transactions a second; pgbench draws the moment of each by chance."""
        self._process = subprocess.Popen(
            [*command, f"--time={_LONGEST_S}", f"--rate={rate_per_s:g}", *as_options(self._database)],
            env={**plain_environment(), **as_environment(self._database)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, self._process)

    def check(self) -> None:
        """Raises ``MigratorError`` with pgbench's last words if it ended by itself."""
        ended = None if self._process is None else self._process.poll()
        if self._process is not None and ended is not None:
            words = self._process.communicate()[1].strip()
            raise MigratorError("pgbench ended by itself", cause=words or f"exit code {ended}")

    def close(self) -> None:
        """Ends it. Safe to call twice."""
        self._stack.close()


def _end(process: subprocess.Popen[str]) -> None:
    with process:  # which waits for it and closes the pipe
        process.kill()
