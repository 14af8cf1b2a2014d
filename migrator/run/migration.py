"""One run of a migration: checks, takes the lead, captures and applies until told to stop.

Phases, in order; each ends in a named error or leads to the next:

1. read structure: source tables, target tables, mapping (nothing is written)
2. lead: a lease with an epoch above every earlier one, the ledger taken over under it; of several processes with
   ``--ha`` one leads and the others wait here
3. agree: event log and ledger are brought to one story (see ``migrator.run.lead.resume``)
4. run: capture in a thread, apply in the caller's thread
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import replace

from pyspark.sql import SparkSession

from migrator.errors import (
    DamageError,
    FencedError,
    KeptPlanError,
    MigratorError,
    PreflightError,
    ReplacedError,
    together,
)
from migrator.model.finding import Finding
from migrator.model.ledger import Ledger
from migrator.model.limits import SET_ASIDE
from migrator.model.progress import Checkpoint
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.ports.leadership import Lease
from migrator.ports.source import LogReader
from migrator.run.analysed import Structure, analysed, grained, source_tables
from migrator.run.apply.executor_watch import watch_executors
from migrator.run.apply.fitting import Fitting
from migrator.run.apply.joined_job import JoinedJob, Manner
from migrator.run.apply.leaders_folder import leaders_folder
from migrator.run.apply.loop import ApplyLoop, OpenedTarget
from migrator.run.apply.transform_job import Staging, TransformJob
from migrator.run.apply.unmapped import UnmappedRows
from migrator.run.beside import beside
from migrator.run.capture.attempt import Anew, Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.capture.priority import at_lower_priority
from migrator.run.capture.source_threads import wait
from migrator.run.cutover.gate import gated
from migrator.run.failure import Stopping
from migrator.run.kept_plans import KeptPlans
from migrator.run.lead.between import refuse_changes
from migrator.run.lead.carried import (
    Carried,
    carry_over,
    mapped_now,
    mirrored_tables,
    unmirrored,
)
from migrator.run.lead.head_start import head_start
from migrator.run.lead.lead import (
    AppliedOnly,
    Lead,
    SureWriter,
    lost,
    overtaken,
    stood_by,
    tell,
)
from migrator.run.lead.read_again import ReadAgain
from migrator.run.lead.recapture import Recapture
from migrator.run.lead.remapping import Remapping, Switch, SwitchingTarget, tidied
from migrator.run.lead.resume import joining, resume
from migrator.run.lead.shortage import named_shortage
from migrator.run.lead.upkeep import looked_at
from migrator.run.mapping_checks import gaps, naming_readers, refuse, with_readers
from migrator.run.parts import EventLog, Parts
from migrator.run.progress import Progress, Snapshot
from migrator.run.request_check import CheckedRequests
from transforms.analysis.fingerprint import Fingerprint, fingerprint
from transforms.analysis.needed import with_needed
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.on_spark.session import named_jvm_end

Until = Callable[[Snapshot], bool]


def preflight(parts: Parts) -> list[Finding]:
    """All findings of both sides. Changes nothing."""
    targets = [target.name for target in parts.mapping.targets]
    read = with_readers(parts.mapping, parts.catalog.preflight(source_tables(parts.mapping)))
    return [*gaps(parts.mapping), *read, *parts.target.preflight(targets, beside(parts.mapping))]


def plans(
    parts: Parts, kept: KeptPlans | None = None
) -> tuple[list[TableSchema], list[TargetTable], dict[str, MappingPlan]]:
    """Reads both structures and checks every mapping function against them; ``kept``: see ``analysed``.

    Raises ``MappingError`` with the problems of all functions, ``SourceError``, ``TargetError``.
    """
    with naming_readers(parts.mapping):
        schemas = parts.catalog.tables(source_tables(parts.mapping))
    targets = parts.target.tables([target.name for target in parts.mapping.targets])
    structure = Structure(
        {schema.id.name: schema for schema in schemas},
        {mapping.name: table for mapping, table in zip(parts.mapping.targets, targets, strict=True)},
        parts.catalog.references(schemas) if grained(parts.mapping) else [],
    )
    found = analysed(parts.spark, parts.mapping, structure, kept)
    if found.problems:
        raise together(found.problems)
    return schemas, targets, found.plans


def carried_by(
    parts: Parts,
    applied: Checkpoint | None,
    targets: Sequence[TargetTable],
    found: MappingType[str, MappingPlan],
    content: Callable[[MappingPlan], Fingerprint] | None = None,
) -> Carried:
    """Returns which rows the target has of these mappings (see ``carry_over``)."""
    schemas = {table.id.name: table.id.schema for table in targets}
    identities = {} if parts.late is None else parts.late.identities(list(found))
    taken = content or (lambda plan: fingerprint(parts.spark(), plan))
    mapped = mapped_now(found, schemas, taken, identities)
    return carry_over(applied, parts.requests.read, found, parts.late, mapped)


class Migration:
    """A run. ``progress`` may be read from other threads.

    Args:
        parts: what it needs from outside.
        standby: whether to wait while another process leads, and again after having been replaced.
    """

    def __init__(self, parts: Parts, standby: bool = False):
        self._parts = parts
        self._standby = standby
        self._admitted = False
        self._reached = False
        self._switch: Switch | None = None
        self._recapture = Recapture(parts.set_damage_aside)
        self._read_again = ReadAgain(parts.reads_replaced, parts.catalog.adopt)
        self.progress = Progress()

    def run(self, stopping: Stopping, until: Until | None = None) -> None:
        """Runs until a stop is requested, or until ``until`` holds.

        A migration that has begun waits for what may come back by itself (a server that can't be reached, Spark's
        JVM, descriptors, memory) and starts anew in this process, with a new epoch, as another process would. A
        first start does not: there a server that doesn't answer is more often a wrong setting. With ``standby`` one
        that was replaced, or lost its lease, stands by.

        Raises:
            PreflightError: a fatal finding.
            MigratorError: whatever stopped the run; positions are kept and a new run goes on from there.
        """
        failures = 0
        while not stopping.requested():
            try:
                self._attempt(stopping.attempt(), until)
                if self._switch is None or not self._switch.done or stopping.requested():
                    return
                self._reached = False
            except MigratorError as error:
                self.progress.met(error)
                if stopping.requested() and self._parts.reads_replaced and isinstance(error, ReplacedError):
                    return  # the next start answers it by itself, as this one would have
                again = not stopping.requested() and self._may_start_again(error)
                unled = not stopping.requested() and not isinstance(error, FencedError)
                if unled and self._parts.cutover is not None:
                    self._parts.cutover.unled(str(error), not again, self.progress)
                if not again:
                    explained = self._recapture.explained(error)
                    if explained is error:
                        raise
                    raise explained from error
                self.progress.set(note=f"{error.what}; starting again")
                wait(failures, stopping)
                failures += 1
                self._parts = replace(self._parts, mapping=self._parts.reload())

    def _may_start_again(self, error: MigratorError) -> bool:
        if self._standby and self._admitted and isinstance(error, FencedError):
            return True
        if isinstance(error, DamageError):
            return self._recapture.met(error)
        if isinstance(error, ReplacedError):
            again = self._read_again.met(error, self.progress.snapshot().segments)
            self.progress.set(captured=None)  # what this attempt had come to isn't where the next one stands
            self.progress.warn(
                "replaced", *([f"{error.what}; all of its rows are read again"] if again else [])
            )
            return again
        again = error.retryable or isinstance(error, KeptPlanError)
        return again and (self._admitted or self._parts.begun())

    def _attempt(self, stopping: Stopping, until: Until | None) -> None:
        """Runs until stopped. What the machine ran out of becomes a named error, whichever thread met it first."""
        with named_shortage(), named_jvm_end():
            self._run(stopping, until)

    def _run(self, stopping: Stopping, until: Until | None) -> None:
        parts = self._parts
        self.progress.doing("looking at the target's revisions")
        if problem := parts.prepare():
            raise PreflightError(
                "the target schema isn't at its head revision",
                cause=problem,
                remedy="run `migrator schema upgrade`, then start again",
            )
        replaced, lease = False, None
        try:
            lease = self._lease(stopping)
            if lease is not None:
                self.progress.set(epoch=lease.epoch, led=lease.epoch)
                self._lead(lease.epoch, stopping, until)
                replaced = not parts.leadership.held()
        finally:
            self.progress.set(epoch=0, doing="", standing_by=False)
            parts.leadership.release()
            parts.target.close()
        try:
            stopping.raise_failure()
        except MigratorError as error:
            # Whatever it met first when it woke up (the new leader has released segments that it was about to
            # read, say): it was replaced, and that is what has to be said, and done something about.
            if lease is None or isinstance(error, FencedError):
                raise
            if replaced:
                raise lost() from error
            successor = None if error.retryable else overtaken(lease.epoch, parts.known_epoch)
            if successor is None:
                raise
            raise successor from error

    def _lease(self, stopping: Stopping) -> Lease | None:
        """The lease, after the checks, waited for as a standby if that is wanted; None if a stop came first."""
        parts = self._parts
        if not stopping.requested():
            self.progress.doing("checking both servers")
            refuse(preflight(parts))
        if not self._standby:
            return None if stopping.requested() else parts.leadership.acquire(parts.known_epoch())
        self.progress.doing("asking who leads")
        while not stopping.requested():
            # A takeover must not wait for Spark to start, nor for its first plans.
            waited = stood_by(parts.leadership, stopping, self.progress, self._warm)
            self._admitted = True
            if stopping.requested():
                break
            if waited:
                refuse(preflight(parts))
            try:
                return parts.leadership.acquire(parts.known_epoch())
            except FencedError:
                continue  # another standby was faster
        return None

    def _warm(self) -> None:
        """Starts Spark and analyses the mapping, so that a takeover needn't wait for either."""
        parts = self._parts
        parts.spark()
        parts.kept.begin()
        found = plans(parts, parts.kept)[2]
        for plan in found.values():
            parts.kept.content(plan)
        parts.kept.keep(found)

    def _announcing(self, spark: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
        """Spark, whose start is told as a step of its own: it takes the longest."""

        sessions: list[SparkSession] = []

        def announced() -> SparkSession:
            if not sessions:
                self.progress.doing("starting Spark")
                sessions.append(spark())
                self.progress.doing("analysing the mapping")
            return sessions[0]

        return announced

    def _lead(self, epoch: int, stopping: Stopping, until: Until | None) -> None:
        parts = self._parts
        lead, self._switch = Lead(parts.leadership, stopping, self.progress), None
        ledger, log, checkpoint = self._agreed(epoch)
        if parts.cutover is not None:  # before Spark starts: a side may be fenced that must be opened again
            parts.cutover.begin(epoch, stopping, self.progress)
        parts, remapping = self._remapped(ledger, checkpoint, epoch)
        schemas, targets, mapping_plans = self._planned(parts)
        self._read_again.refuse_shared(mapping_plans)
        if stopping.requested():
            return  # Spark takes seconds to start
        self.progress.doing("having the source keep its changes")
        self._have_captured(schemas, checkpoint)
        carried = remapping.carried(
            lambda: carried_by(parts, ledger.checkpoint, targets, mapping_plans, parts.kept.content)
        )
        parts.kept.keep(mapping_plans)
        self.progress.warn("mapping", *carried.warnings)
        self._switch = Switch(
            remapping, mapping_plans, parts.target, lead, self.progress, parts.step, stopping.request
        )
        if self._switch.begin(ledger.checkpoint, carried):
            return
        capture = CaptureLoop(
            self._source(schemas),
            self._capturing(
                schemas, checkpoint, epoch, self._anew(schemas, checkpoint, ledger, mapping_plans)
            ),
            SureWriter(log.writer, lead),
            CheckedRequests(
                parts.requests, schemas, parts.catalog.check_scope, parts.check_doubts, self.progress
            ),
            log.room,
            self.progress,
            parts.step,
        )
        job = self._transform_job(targets, mapping_plans, epoch)
        fitting = Fitting(schemas, leaders_folder(parts.slots, epoch) / "fitted")
        switching = SwitchingTarget(parts.target, lead, self._switch.look)
        apply = ApplyLoop(
            log.reader,
            lambda batch, known: carried.noted(job.map(fitting.fitted(batch), known)),
            OpenedTarget(gated(switching, parts.cutover, stopping, self.progress), ledger, epoch),
            self.progress,
            parts.apply_limits,
            parts.step,
            job.fills,
        )
        self.progress.doing("preparing the first batches")
        job.warm_up(dumping=checkpoint is None or checkpoint.dumping())
        self._watched_and_told(log, epoch, stopping)
        self.progress.doing("")
        upkeep = looked_at(parts.upkeep, parts.mapping, targets, self.progress, stopping)
        try:
            self._go(capture, apply, stopping, until, checkpoint != ledger.checkpoint)
        finally:
            upkeep.join(timeout=5)
            job.close()

    def _planned(self, parts: Parts) -> tuple[list[TableSchema], list[TargetTable], dict[str, MappingPlan]]:
        """Returns both structures, the old one with what is needed of it, and what each function does."""
        self.progress.doing("reading the structure of both sides")
        parts.kept.begin()
        announced = replace(parts, spark=self._announcing(parts.spark))
        schemas, targets, found = plans(announced, parts.kept)
        announced.spark()  # also where all plans were kept: a stop that comes meanwhile is looked for behind it
        return with_needed(parts.spark, schemas, found.values()), targets, found

    def _agreed(self, epoch: int) -> tuple[Ledger, EventLog, Checkpoint | None]:
        """Brings event log and ledger to one story: both, and where capture goes on."""
        parts = self._parts
        self.progress.doing("holding the event log against the ledger")
        ledger = parts.target.open(epoch)
        self.progress.warn("damage", *filter(None, [self._recapture.prepare(ledger)]))
        self.progress.set(note=parts.adopt(ledger))
        log = parts.event_log(epoch, ledger)
        checkpoint = resume(ledger, log.writer.last(), log.reader)
        # A crash between commit and release left these: a log at its bound would have nothing to release them.
        log.reader.release(ledger.segment)
        parts.step("run.led")
        return ledger, log, checkpoint

    def _remapped(self, ledger: Ledger, checkpoint: Checkpoint | None, epoch: int) -> tuple[Parts, Remapping]:
        """Returns what the run works with: the functions that are in force, and next ones that fill tables beside."""
        parts = self._parts
        remapping = tidied(parts.besides, parts.mapping, ledger, epoch)
        known = [one for one in (ledger.checkpoint, checkpoint) if one is not None]
        late = remapping.late(parts.late, parts.requests, known)
        return replace(parts, mapping=remapping.applied(parts.mapping), late=late), remapping

    def _watched_and_told(self, log: EventLog, epoch: int, stopping: Stopping) -> None:
        """Begins the threads that watch executors, tell onlookers how the run stands, and have rows tried again."""
        parts, progress = self._parts, self.progress
        if (retries := parts.retries) is not None:
            retries.begin(progress)
            stopping.thread("retries", lambda: retries.run(progress, stopping))
        stopping.thread("executors", lambda: watch_executors(parts.executors, progress, stopping))
        stopping.thread(
            "hints",
            lambda: tell(parts.hints, epoch, log.writer.last, log.room.used_bytes, progress, stopping),
        )

    def _have_captured(self, schemas: list[TableSchema], checkpoint: Checkpoint | None) -> None:
        """Has the source keep the changes of all tables. Raises ``MappingError`` where they can't be gone on with."""
        parts = self._parts
        if checkpoint is None:
            # Only then: putting back a table that somebody took out of the publication while we were down would
            # hide from the log reader that its changes are missing.
            parts.catalog.prepare(schemas)
            return
        refuse_changes(checkpoint, schemas, parts.requests.read())
        if new := sorted(joining(checkpoint, schemas)):
            parts.catalog.adopt(new)

    def _go(
        self, capture: CaptureLoop, apply: ApplyLoop, stopping: Stopping, until: Until | None, behind: bool
    ) -> None:
        """Captures and applies until stopped; whoever waited for ``until`` gets all that was captured by then."""
        thread = stopping.thread("capture", at_lower_priority(lambda: capture.run(stopping)))
        watch = stopping.thread("watch", lambda: self._watch(stopping, until))
        if behind:
            head_start(self._parts.catalog.position, self.progress, stopping)
        try:
            apply.run(stopping)
        except MigratorError as error:
            stopping.failed(error)
        finally:
            stopping.request()
            thread.join(timeout=30)
            watch.join(timeout=5)
        # What is mapped ahead of a switch was mapped by the former function.
        switched = self._switch is not None and self._switch.done
        if self._reached and not switched and not stopping.has_failed() and not thread.is_alive():
            apply.finish()

    def _capturing(
        self,
        schemas: list[TableSchema],
        checkpoint: Checkpoint | None,
        epoch: int,
        anew: Anew,
    ) -> Attempt:
        """Returns what is captured under an epoch, and from where on."""
        parts = self._parts
        return Attempt(
            {schema.id: schema for schema in schemas},
            checkpoint,
            parts.capture_limits,
            f"{epoch}-{secrets.token_hex(4)}",
            {schema.id: parts.catalog.estimated_rows(schema) for schema in schemas},
            applied=True,
            anew=anew,
            changes_only=parts.changes_only,
        )

    def _anew(
        self,
        schemas: list[TableSchema],
        checkpoint: Checkpoint | None,
        ledger: Ledger,
        found: dict[str, MappingPlan],
    ) -> Anew:
        """Returns which tables are dumped from now on though the migration has begun; the operator is told."""
        mirrored, new = mirrored_tables(found.values()), joining(checkpoint, schemas)
        once_more = unmirrored(ledger.checkpoint, found.values()) - new
        said = f"{', '.join(map(str, sorted(once_more)))}: all rows are read again, for the mirror of joined mappings"
        self.progress.warn("mirror", *([said] if once_more else []))
        return Anew(self._read_again.tables, new, mirrored, once_more)

    def _source(self, schemas: list[TableSchema]) -> SourcePorts:
        """The source, which forgets no more than it may."""
        ports = self._parts.source(schemas)
        if not self._parts.keep_until_applied:
            return ports

        def reader() -> LogReader:
            return AppliedOnly(ports.log_reader(), lambda: self.progress.snapshot().applied)

        return replace(ports, log_reader=reader)

    def _transform_job(
        self, targets: list[TargetTable], found: dict[str, MappingPlan], epoch: int
    ) -> TransformJob:
        """The mapping, with its mirror in place."""
        parts, slots = self._parts, leaders_folder(self._parts.slots, epoch)
        spark, by_name = parts.spark(), {table.id.name: table for table in targets}
        limits, say = parts.apply_limits, self.progress.say
        grained = {name: plan for name, plan in found.items() if plan.kind is MappingKind.GRAIN}
        joined = None
        if grained:
            most = limits.bad_rows_per_table if limits.bad_rows == SET_ASIDE else None
            manner = Manner(limits.slice_grains, parts.changes_only, parts.kept.prove, most)
            joined = JoinedJob(spark, grained, by_name, slots, manner, say, parts.step)
            parts.target.prepare_mirror(joined.targets)
        row_wise = {name: plan for name, plan in found.items() if name not in grained}
        for plan in row_wise.values():
            parts.kept.prove(plan)
        staging = None if parts.stager is None else Staging(parts.stager, limits.staging_rows, say)
        job = TransformJob(spark, row_wise, by_name, slots, staging, joined, parts.changes_only)
        if limits.bad_rows == SET_ASIDE:
            job.unmapped = UnmappedRows(spark, limits.bad_rows_per_table)
        return job

    def _watch(self, stopping: Stopping, until: Until | None) -> None:
        """Stops the run when ``until`` holds or the lease is lost."""
        while not stopping.wait(0.1):
            if not self._parts.leadership.held():
                raise lost()
            if until is not None and until(self.progress.snapshot()):
                self._reached = True
                stopping.request()
