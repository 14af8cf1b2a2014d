"""A second run of the migration on "another machine", while the first one is stopped."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.faults.fault import migration_name, state_folder
from scenarios.faults.process_tree import command_line, descendants, environment, send
from scenarios.world import World

_ITS_BATCHES = 3


class StandIn:
    """``migrator run`` from a copy of the project, with a state folder of its own.

    Attributes:
        timeout_s: how long to wait for it. It starts a Spark session first, which takes minutes on a busy machine.
    """

    timeout_s = 300.0

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._target: Database | None = None
        self._migration = ""
        self._log = Path()

    def start(self, world: World, stopped: int, other: Mapping[str, str] | None = None) -> None:
        """Starts what the stopped process is, with its variables, from a copy of the project.

        In the copy's settings the texts ``other`` are replaced by what they map to.

        Its state folder is its own, so that it finds no lease; the event log is the same, as on a shared
        filesystem. Raises ``MigratorError`` when the project's state isn't in its folder.
        """
        project, state = world.config.parent.resolve(), state_folder(world)
        if not state.is_relative_to(project):
            raise MigratorError(
                "a stand-in needs a state folder of its own",
                where=str(state),
                remedy="configure [migration] state relative to the project's folder",
            )
        copy = world.folder / "standin"
        own = state.relative_to(project)
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns(own.parts[0], "__pycache__"))
        settings = copy / world.config.name
        for text, instead in (other or {}).items():
            settings.write_text(settings.read_text().replace(text, instead))
        (copy / own).mkdir(parents=True)
        (copy / own / "eventlog").symlink_to(state / "eventlog")
        self._target, self._migration = world.target.direct, migration_name(world)
        self._log = world.folder / "standin.log"
        command = [
            word.replace(str(world.config), str(copy / world.config.name)) for word in command_line(stopped)
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(stopped),
                start_new_session=True,
            )

    def await_lead(self, world: World) -> None:
        """Waits until it has brought some batches of its own into the target: by then it holds the ledger.

        Some, since the first of them may be the very one that the stopped process holds. Raises ``MigratorError``
        with the end of its output if that doesn't come.
        """
        deadline = time.monotonic() + self.timeout_s
        while world.applied(self.pid) < _ITS_BATCHES:
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise MigratorError(
                    "the stand-in " + ("ended" if ended else f"didn't lead within {self.timeout_s:g} s"),
                    where=str(self._log),
                    cause=self._log.read_text(errors="replace")[-500:],
                )
            threading.Event().wait(0.1)

    @property
    def pid(self) -> int:
        """The id of the stand-in's process; 0 while there is none."""
        return self._process.pid if self._process else 0

    def leader(self) -> str:
        """Process and epoch, for reports."""
        return f"process {self.pid} of epoch {self._ledger_epoch()}"

    def kill(self) -> None:
        """Ends it and all below it as a crash would. Does nothing if it doesn't run."""
        process, self._process = self._process, None
        if process is not None:
            send([process.pid, *descendants(process.pid)], signal.SIGKILL)
            process.wait()

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
