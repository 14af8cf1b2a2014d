"""A second run of the migration on "another machine", while the first one is stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.faults.fault import migration_name, state_folder
from scenarios.world import World


class StandIn:
    """``migrator run`` from a copy of the project, with a state folder of its own.

    Attributes:
        timeout_s: how long to wait for it (it starts a Spark session first).
    """

    timeout_s = 120.0

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._target: Database | None = None
        self._migration = ""
        self._log = Path()
        self._epoch = 0

    def start(self, world: World) -> None:
        """Starts it. Raises ``MigratorError`` when the project's state isn't in its folder (both would share it)."""
        project, state = world.config.parent, state_folder(world)
        if not state.is_relative_to(project):
            raise MigratorError(
                "a stand-in needs a state folder of its own",
                where=str(state),
                remedy="configure [migration] state relative to the project's folder",
            )
        copy = world.folder / "standin"
        ignored = shutil.ignore_patterns(state.relative_to(project).parts[0], "__pycache__")
        shutil.copytree(project, copy, ignore=ignored)
        self._target, self._migration = world.target.direct, migration_name(world)
        self._epoch = self._ledger_epoch()
        self._log = world.folder / "standin.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "migrator",
                    "run",
                    "--plain",
                    "--config",
                    str(copy / world.config.name),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={key: value for key, value in os.environ.items() if not key.startswith("MIGRATOR_")},
                start_new_session=True,
            )

    def await_epoch(self) -> None:
        """Waits until the ledger is its. Raises ``MigratorError`` with the end of its output if it isn't."""
        deadline = time.monotonic() + self.timeout_s
        while self._ledger_epoch() <= self._epoch:
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise MigratorError(
                    "the stand-in " + ("ended" if ended else f"didn't lead within {self.timeout_s:g} s"),
                    where=str(self._log),
                    cause=self._log.read_text(errors="replace")[-500:],
                )
            threading.Event().wait(0.1)

    def leader(self) -> str:
        """Process and epoch, for reports."""
        return f"process {self._process.pid if self._process else 0} of epoch {self._ledger_epoch()}"

    def stop(self) -> None:
        """Stops it as Ctrl-C would, or kills it. Does nothing if it doesn't run."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(self.timeout_s / 2)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def set_aside_event_log(self, world: World) -> None:
        """Does what the first machine's next run asks for: its event log is older than the target by now."""
        event_log = state_folder(world) / "eventlog"
        if event_log.exists():
            event_log.rename(event_log.with_name("eventlog.replaced"))

    def _ledger_epoch(self) -> int:
        if self._target is None:
            return 0
        connection = self._target.connect(autocommit=True)
        try:
            cursor = connection.cursor()
            cursor.execute("SELECT epoch FROM migrator.ledger WHERE migration = %s", [self._migration])
            rows = cursor.fetchall()
        finally:
            connection.close()
        return int(rows[0][0]) if rows else 0
