"""``migrator story NAME``: a whole migration of somebody else's database, judged by its story's own oracle.

Fresh servers, the old data, the new schema, ``migrator run`` under the writers of the story, snapshots while it
streams, and at rest two verdicts that share no code: of the oracle over every row, and of ``migrator verify``.
"""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import click

from migrator.cli.signals import unwinding
from migrator.cli.verify import verify
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios.database import Database
from scenarios.logins import give_own_login
from scenarios.project import make_project, servers
from scenarios.stories.cascades import show_deletes
from scenarios.stories.samples import Sample, Sampler
from scenarios.stories.stories import Story, story_of
from scenarios.stories.words import Difference
from scenarios.workload import WriterReport

_LONG_S = 900.0
"""A bound on hanging, not on slow machines."""
_RARE = "change mind"
"""The action that always rolls back, so it never counts as done."""
_SEES_TRIGGERS = ("GRANT TRIGGER",)
_VERDICTS = {0: "equal", 1: "DIFFERENT", 2: "error", 3: "unknown"}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The settings with which a story is run.

    Attributes:
        seed: of the writers.
        rate_per_s: row changes per second, over three writers.
        seconds: how long at least the writers go on behind the dump; longer until every action was done.
        samples: how many snapshots are taken in the middle of the stream.
    """

    seed: int = 1
    rate_per_s: float = 60.0
    seconds: float = 10.0
    samples: int = 3


@dataclass(frozen=True)
class Outcome:
    """The result of a story.

    Attributes:
        writers: what the concurrent writers did.
        samples: the snapshots, each with its verdict.
        differences: rows in which the new tables are not what the oracle says.
        verdict: exit code of ``migrator verify``.
        report: its words.
    """

    writers: WriterReport
    samples: tuple[Sample, ...]
    differences: tuple[Difference, ...]
    verdict: int
    report: tuple[str, ...] = field(repr=False)

    @property
    def code(self) -> int:
        """The exit code: 0 equal in every respect, 1 different, 3 unknown."""
        wrong = self.differences or any(sample.differences for sample in self.samples)
        return 1 if wrong else self.verdict


@click.command()
@click.argument("name")
@click.option("--source", type=click.Choice(["mariadb", "mysql", "postgresql"]), help="The old database.")
@click.option("--target", type=click.Choice(["mariadb", "mysql", "postgresql"]), help="The new database.")
@click.option("--seed", default=1, show_default=True, help="Seed of the writers.")
@click.option("--rate", default=60.0, show_default=True, help="Row changes per second by three writers.")
@click.option(
    "--seconds", default=10.0, show_default=True, help="How long they go on behind the dump at least."
)
@click.option("--samples", default=3, show_default=True, help="Snapshots in the middle of the stream.")
@click.option("--keep", is_flag=True, help="Leave the servers up at the end, until Ctrl-C.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".story"),
    show_default=True,
    help="Project and reports.",
)
def story(
    name: str,
    source: str | None,
    target: str | None,
    seed: int,
    rate: float,
    seconds: float,
    samples: int,
    keep: bool,
    folder: Path,
) -> int:
    """Migrate the database of a story (sakila, employees) under its writers and judge every row."""
    found, kind, new_kind = story_of(name, source, target)
    click.get_current_context().with_resource(unwinding())
    started = time.monotonic()

    def say(text: str) -> None:
        click.echo(click.style(f"[{time.monotonic() - started:6.1f}s] ", fg="cyan") + text)

    with ExitStack() as stack:
        say(f"starting two servers: the old side ({kind}) and the new side ({new_kind})")
        old, new = servers(stack, kind, new_kind)
        config = make_sides(found, old, new, folder, say)
        outcome = play(found, old, new, config, Plan(seed, rate, seconds, samples), say)
        _summary(found, outcome, configuration.load(config))
        if keep:
            _stay(old, new, config)
        return outcome.code


def make_sides(
    found: Story, old: Database, new: Database, folder: Path, say: Say, more: tuple[str, ...] = ()
) -> Path:
    """Loads the old side and makes project and new schema; returns the project's file."""
    found.load(old)
    say(f"loaded the old database of {found.name}, the awkward rows too")
    triggers = show_deletes(old)
    if triggers:
        say(
            f"{old.kind} doesn't log what foreign keys delete: {triggers} triggers do it, as `migrator check` says"
        )
    config = make_project(folder, old, new, found.folder, found.name, more)
    wiring.upgrade_user_target(configuration.load(config))
    say(f"new schema created by the project's Alembic revisions; the project is in {config.parent}")
    give_own_login(config, old, new, _SEES_TRIGGERS if triggers else ())
    say("logins made by what `migrator grants` prints; the migration has no other rights")
    return config


def play(found: Story, old: Database, new: Database, config: Path, plan: Plan, say: Say) -> Outcome:
    """The migration, from its first row to both verdicts.

    Raises ``MigratorError`` when the run ends early, or anything stands still for too long.
    """
    settings = configuration.load(config)
    writers = found.writers(old, seed=plan.seed, rate_per_s=plan.rate_per_s)
    with _running(settings) as now:
        writers.start()
        say(
            f"migrator run and three writers have begun: about {plan.rate_per_s:g} row changes/s, seed {plan.seed}"
        )
        try:
            _await(lambda run: run.applied_dump_complete, now, "the dump")
            say("every table is dumped, every joined table filled; the writers go on")
            ends = time.monotonic() + plan.seconds
            wanted = set(found.writers.ACTIONS) - {_RARE}
            _await(
                lambda _: time.monotonic() > ends and set(writers.report().by_action()) >= wanted,
                now,
                "the writers' last kind of change",
            )
        finally:
            report = writers.stop()
        say(f"writers stopped after {report.commits:,} commits, {report.row_changes:,} row changes")
        _drained(settings, now, "what the writers did")  # the sampler's waits are about its own writer only
        samples = _sampled(found, old, new, settings, plan, say)
        _drained(settings, now, "the drain")
    say("drained and stopped; judging")
    different = tuple(found.differences(old, new))
    lines = io.StringIO()
    with redirect_stdout(lines):
        code = verify.main(["--config", str(config)], standalone_mode=False)
    return Outcome(report, samples, different, int(code or 0), tuple(lines.getvalue().splitlines()))


def _drained(settings: Settings, now: Callable[[], Snapshot], what: str) -> None:
    position = wiring.source_position(settings)
    _await(lambda run: run.applied is not None and run.applied >= position, now, what)


def _sampled(
    found: Story, old: Database, new: Database, settings: Settings, plan: Plan, say: Say
) -> tuple[Sample, ...]:
    if not plan.samples or old.kind == "postgresql":
        return ()
    sampler = Sampler(found, old, new, settings.name, lambda: wiring.source_position(settings), plan.seed)
    samples = []
    for sample in sampler.take(plan.samples):
        samples.append(sample)
        say(
            f"snapshot in the stream, behind {sample.transactions:,} more transactions:"
            f" {_differing_tables(sample.differences)}"
        )
    return tuple(samples)


@contextmanager
def _running(settings: Settings) -> Iterator[Callable[[], Snapshot]]:
    """``migrator run`` in a thread: with the verifier it needs only one Spark. Gives its progress, or its error."""
    migration, stopping = Migration(wiring.parts(settings)), Stopping()
    ended = threading.Event()

    def run() -> None:
        try:
            migration.run(stopping)
        finally:
            ended.set()

    def now() -> Snapshot:
        if ended.is_set():
            thread.join()
            stopping.raise_failure()
            raise MigratorError("migrator run ended early", remedy="this is a fault of the tool: report it")
        return migration.progress.snapshot()

    thread = stopping.thread("story-run", run)
    try:
        yield now
    finally:
        stopping.request()
        thread.join()
    stopping.raise_failure()


def _await(condition: Callable[[Snapshot], bool], now: Callable[[], Snapshot], what: str) -> None:
    deadline = time.monotonic() + _LONG_S
    while not condition(now()):
        if time.monotonic() > deadline:
            raise MigratorError(f"{what} did not come within {_LONG_S:.0f} s")
        time.sleep(0.1)  # between two looks at the condition


def _differing_tables(differences: tuple[Difference, ...]) -> str:
    return (
        "equal" if not differences else f"DIFFERENT in {len(differences):,} rows; the first: {differences[0]}"
    )


def _summary(found: Story, outcome: Outcome, settings: Settings) -> None:
    click.echo()
    for action, number in sorted(outcome.writers.by_action().items()):
        click.echo(f"  {action:24} {number:6,} transactions")
    in_step = sum(not sample.differences for sample in outcome.samples)
    click.echo(
        f"in the stream: {in_step} of {len(outcome.samples)} snapshots are exactly the story's mapping"
    )
    click.echo(
        f"at rest, by the oracle of {found.name} over every row: {_differing_tables(outcome.differences)}"
    )
    for difference in outcome.differences[1:10]:
        click.echo(f"  {difference}")
    click.echo(f"at rest, by migrator verify: {_VERDICTS[outcome.verdict]}; reports in {settings.reports()}")
    if outcome.verdict:
        click.echo("\n".join(outcome.report))


def _stay(old: Database, new: Database, config: Path) -> None:
    """Keeps the servers up until Ctrl-C or SIGTERM: they belong to this process."""
    for side, database in (("old", old), ("new", new)):
        click.echo(f"{side} database: {database.url()}")
    click.echo(f"to go on migrating: migrator run --config {config}")
    click.echo(f"the servers stay up until Ctrl-C here, or: kill {os.getpid()}")
    try:
        signal.pause()
    except KeyboardInterrupt:
        click.echo("stopped")
