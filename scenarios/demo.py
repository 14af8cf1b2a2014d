"""``migrator demo``: the main job on embedded servers, from an empty machine to the second verdict.

Nothing here is special to the tool: the demo makes two databases and a copy of the project in
``scenarios/flights``, and then runs the same commands a user runs.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import click

from migrator.cli.verify import verify
from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.wiring import parts as wiring
from scenarios.database import Database
from scenarios.flights import old_schema
from scenarios.flights.writers import FlightWriters
from scenarios.project import make_project, servers

PROJECT = Path(__file__).parent / "flights"
_DRAIN_S = 600.0  # a bound on hanging, not on slow machines: plans are compiled before the first row
_LEAVE_ROOM = (
    "# Twelve targets, two servers, writers and a verifier share this machine.",
    "[capture]",
    "dump_share = 1.0  # nobody waits for these writers",
    "[apply]",
    "interval_s = 3.0",
)


@click.command()
@click.option(
    "--source", type=click.Choice(["postgresql", "mariadb", "mysql"]), default="postgresql", show_default=True
)
@click.option(
    "--rate", default=80, show_default=True, help="Row changes per second by the concurrent writers."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the writers.")
@click.option("--every", default=1, show_default=True, help="Load every n-th flight only.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".demo"),
    show_default=True,
    help="Project and reports.",
)
def demo(source: str, rate: int, seed: int, every: int, folder: Path) -> int:
    """Migrate a year of real flights between two embedded servers while writers keep writing, and verify it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds the stack: nothing is left running
    with ExitStack() as stack:
        say = _Narrator()
        say(f"starting two servers: the old side ({source}) and the new side (postgresql)")
        old, new = servers(stack, source)
        say("loading the old schema: nycflights13, five tables")
        old_schema.create(old)
        rows = old_schema.load(old, every=every)
        say(f"loaded {sum(rows.values()):,} rows: " + ", ".join(f"{name} {n:,}" for name, n in rows.items()))
        config = make_project(folder, old, new, PROJECT, "flights", _LEAVE_ROOM)
        settings = configuration.load(config)
        wiring.upgrade_user_target(settings)
        say(f"new schema created by the project's Alembic revisions; the project is in {config.parent}")
        return _migrate(stack, say, old, settings, config, rate, seed)


def _migrate(
    stack: ExitStack,
    say: _Narrator,
    old: Database,
    settings: configuration.Settings,
    config: Path,
    rate: int,
    seed: int,
) -> int:
    # No hot rows here: a row that changes several times a second can only be set aside by a comparison.
    writers = FlightWriters(old, seed=seed, rate_per_s=rate, threads=4, hot_percent=0)
    writers.start()
    stack.callback(writers.stop)
    say(f"writers started: about {rate} row changes per second, seed {seed}")
    process = stack.enter_context(running(config, say.indented))
    _await(lambda: _dumped(settings), process, "the dump")
    say("every table is dumped; verifying while the writers go on")
    live = _verify(config, say)
    report = writers.stop()
    say(f"writers stopped after {report.commits:,} commits, {report.row_changes:,} row changes; draining")
    position = wiring.source_position(settings)
    _await(lambda: wiring.applied_reaches(settings, position), process, "the drain")
    process.stop()
    say("drained; verifying again with everything at rest")
    final = _verify(config, say)
    say(
        f"live verdict: {_VERDICTS[live]}; final verdict: {_VERDICTS[final]}; reports in {settings.reports()}"
    )
    return final or live


_VERDICTS = {0: "equal", 1: "DIFFERENT", 2: "error", 3: "unknown"}


class _Narrator:
    """Says what happens, with the time since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, text: str) -> None:
        click.echo(click.style(f"[{time.monotonic() - self._started:6.1f}s] ", fg="cyan") + text)

    def indented(self, text: str) -> None:
        """A line of a command's own output."""
        click.echo(f"            {text}")


class RunProcess:
    """``migrator run`` as a process of its own, started again if it is killed."""

    def __init__(self, config: Path, show: Callable[[str], None]):
        self._config = config
        self._show = show
        self._stopping = False
        self.restarts = 0
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "migrator", "run", "--plain", "--config", str(self._config)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._show(
            f"migrator run, process {self._process.pid} (kill -9 it if you like: it goes on where it was)"
        )
        self._printer = threading.Thread(target=self._print, args=(self._process,), daemon=True)
        self._printer.start()

    def _print(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._show(line.rstrip())

    def check(self) -> None:
        """Starts a killed run again; raises ``MigratorError`` when the run ended by itself."""
        code = self._process.poll()
        if code is None:
            return
        self._printer.join(timeout=5)
        if code != -signal.SIGKILL:
            raise MigratorError(
                "migrator run ended early", cause=f"exit code {code}; its last lines are above"
            )
        self.restarts += 1
        self._show("migrator run was killed; starting it again")
        self._start()

    def stop(self) -> None:
        """Stops the run cleanly, as Ctrl-C would."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._printer.join(timeout=5)


@contextmanager
def running(config: Path, show: Callable[[str], None]) -> Iterator[RunProcess]:
    """A running ``migrator run`` that is stopped at the end of the block."""
    process = RunProcess(config, show)
    try:
        yield process
    finally:
        process.stop()


def _await(condition: Callable[[], bool], process: RunProcess, what: str) -> None:
    deadline = time.monotonic() + _DRAIN_S
    while not condition():
        process.check()
        if time.monotonic() > deadline:
            raise MigratorError(f"{what} did not end within {_DRAIN_S:.0f} s", remedy="see the lines above")
        time.sleep(0.2)


def _dumped(settings: configuration.Settings) -> bool:
    ledger = wiring.status(settings).ledger
    return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()


def _verify(config: Path, say: _Narrator) -> int:
    """``migrator verify``, in this process: both verdicts then need only one Spark."""
    lines = io.StringIO()
    with redirect_stdout(lines):
        code = verify.main(["--config", str(config)], standalone_mode=False)
    for line in lines.getvalue().splitlines():
        say.indented(line)
    return int(code or 0)
