"""``migrator run``."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace

import click

from migrator.cli.docs import documents
from migrator.cli.group.streams import Unwritten
from migrator.cli.kept import keep, keep_stop, reason_option
from migrator.cli.options import Amount, OnSpark, either_way, repair_words
from migrator.cli.phases import say
from migrator.cli.run.display import Display
from migrator.cli.run.service import ServiceManager
from migrator.cli.run.verifier import Verifier, command
from migrator.cli.signals import stop_on_signals
from migrator.config.project import Settings
from migrator.errors import MappingError, MigratorError
from migrator.model.requests.request import RequestBook
from migrator.run.analysed import source_tables
from migrator.run.caught_up import caught_up
from migrator.run.commands.dump_order import DumpOrder
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Progress
from migrator.wiring import parts as wiring
from migrator.wiring.cutover import part_of, undone_unled
from migrator.wiring.observed.watching import Behind, watched
from migrator.wiring.under_cutover import refuse_under_cutover
from transforms.registry import Mapping
from verify.tables.continuous import DEFAULT_RATE


@click.command()
@either_way
@click.option(
    "--until",
    type=click.Choice(["caught-up"]),
    default=None,
    help="End by itself once every table is dumped and everything committed by then is applied.",
)
@click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
@click.option(
    "--ha",
    "standby",
    is_flag=True,
    help="Of several processes one leads; this one stands by while another does, and again when it was replaced.",
)
@reason_option
@click.option(
    "--unproven-log",
    is_flag=True,
    help="Go on though the last transaction read was purged from the source's binlog, on your word that the server"
    " wasn't restored or reset since; kept in the history.",
)
@click.option(
    "--accept-mapping",
    "accepted",
    metavar="TARGET",
    multiple=True,
    help="Go on though the mapping of this target table was changed, or the table made again, on your word that the"
    " rows mapped so far are in it and are what the mapping makes of them; kept in the history with what differs, and"
    " with --reason, which it needs. May be given more than once.",
)
@click.option("--verify", "verified", is_flag=True, help="Keep verifying beside it, in a process of its own.")
@click.option(
    "--verify-rate",
    default=DEFAULT_RATE,
    show_default=True,
    type=Amount(min=0, min_open=True),
    help="Rows of both sides that the verifier reads a second, on average.",
)
@click.option(
    "--listen",
    default="",
    metavar="HOST:PORT",
    help="Have live page, metrics and health there, in place of [observe] listen: for a second process on a machine.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default=None,
    help="Form of the state folder's run.log, in place of [observe] log_format.",
)
def run(
    project: OnSpark,
    until: str | None,
    plain: bool,
    standby: bool,
    reason: str,
    unproven_log: bool,
    accepted: tuple[str, ...],
    verified: bool,
    verify_rate: float,
    listen: str,
    log_format: str | None,
) -> None:
    """Capture, map and apply until stopped (Ctrl-C or SIGTERM); goes on where it was when started again."""
    settings = replace(project.settings, reason=reason, unproven_log=unproven_log, accepted=accepted)
    stopping = Stopping()
    stop_on_signals(stopping)
    try:
        parts = wiring.parts(settings, project.master, project.options)
    except MigratorError as error:  # no leader comes while it lasts: a side may be closed meanwhile
        click.echo(undone_unled(settings, str(error), final=True), nl=False)
        raise
    parts = replace(parts, cutover=part_of(settings, parts.step))
    refuse_unaccepted(accepted, parts.mapping, reason)
    if accepted:
        refuse_under_cutover(settings, "accepting another mapping")
    if unproven_log:
        keep(settings, "force", "--unproven-log")
    migration = Migration(parts, standby)
    goal = caught_up(parts.catalog.position) if until == "caught-up" else None
    manager = ServiceManager()
    with ExitStack() as stack:
        page, form = behind(settings, parts.mapping), log_format or ""
        there = stack.enter_context(watched(settings, migration.progress, page, listen, form))
        if there is not None:
            say(f"the live page is at {there.url}")
        stack.enter_context(Display(migration.progress, plain=plain or None))
        beside = None
        if manager.listens():
            stopping.thread("service", lambda: manager.follow(migration.progress, stopping))
        if verified:
            log = settings.state / "verify.log"
            started = command(settings.file, verify_rate)
            verifier = Verifier(started, settings.reports(), log, migration.progress, repair_words(settings))
            beside = stopping.thread("verifier", lambda: verifier.run(stopping))
        said = "it failed"
        try:
            migration.run(stopping, goal)
            said = "it was told to" if stopping.requested() else "it caught up"
        except MigratorError as error:
            said = f"error: {error}"
            raise
        finally:
            migration.progress.set(ended=True)
            keep_stop(settings, said)
            stopping.request()
            if beside is not None:
                beside.join(timeout=15)
    with suppress(Unwritten):  # it ended as it was to, whether or not that can be said
        click.echo(summary(migration.progress))


def behind(settings: Settings, mapping: Mapping) -> Behind:
    """Returns what stands behind the run's live page: dump requests for the tables of its mapping, documents."""
    known = source_tables(mapping)

    def start(tables: tuple[str, ...]) -> RequestBook:
        return wiring.start_dump(settings, DumpOrder(tables), known)

    return Behind(start, document)


def document(name: str) -> str | None:
    """Returns the text of a document; None: there is none of that name."""
    found = documents().get(name)
    return None if found is None else found.read_text("utf-8")


def refuse_unaccepted(accepted: tuple[str, ...], mapping: Mapping, reason: str) -> None:
    """Raises ``MappingError`` for a target that the mapping doesn't make, or where nobody says why."""
    unknown = [name for name in accepted if name not in mapping]
    if unknown:
        raise MappingError(
            f"the mapping makes no target table {unknown[0]!r}",
            where="--accept-mapping",
            cause=f"it makes {', '.join(target.name for target in mapping)}",
            remedy="name one of these",
        )
    if accepted and not reason.strip():
        raise MappingError(
            "a changed mapping is accepted without a reason",
            where="--accept-mapping",
            cause="whoever reads the history later can't know why rows mapped before are right",
            remedy=f"say why: migrator run {' '.join(f'--accept-mapping {name}' for name in accepted)}"
            " --reason '...'",
        )


def summary(progress: Progress) -> str:
    """Summarizes a run in a few lines."""
    now = progress.snapshot()
    dumped, dropped = sum(d.rows for d in now.dumps), sum(d.dropped_rows for d in now.dumps)
    lags = progress.lag_quantiles_s()
    lines = [
        f"dumped rows      {dumped:,} (in {sum(d.chunks for d in now.dumps):,} chunks; {dropped:,} rows dropped by"
        " reconciliation because the log had something newer)",
        f"streamed changes {now.applied_changes:,} in {now.applied_transactions:,} transactions",
        f"target commits   {now.applied_batches:,}",
    ]
    if lags is not None:
        lines.append(f"lag              p50 {lags[0] * 1000:,.0f} ms, p99 {lags[1] * 1000:,.0f} ms")
    lines.append(f"position         {now.applied.token if now.applied else '-'}")
    return "\n".join(lines)
