"""Everything that a run needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from migrator.model.ledger import Ledger
from migrator.model.limits import ApplyLimits, CaptureLimits
from migrator.model.table import TableSchema
from migrator.ports.besides import Besides
from migrator.ports.eventlog import BatchReader, EventLogRoom, SegmentWriter
from migrator.ports.hints import Hints
from migrator.ports.leadership import Leadership
from migrator.ports.requests import RequestStore
from migrator.ports.source import SourceCatalog
from migrator.ports.target import Stager, Target
from migrator.ports.upkeep import Upkeep
from migrator.run.capture.loop import SourcePorts
from migrator.run.cutover.gate import CutOvers
from migrator.run.kept_plans import KeptPlans
from migrator.run.lead.carried import LateTargets
from migrator.run.lead.recapture import SetAside
from migrator.run.lead.retries import Retries
from migrator.run.request_check import DoubtsCheck
from migrator.run.steps import Step, no_step
from transforms.registry import Mapping


@dataclass(frozen=True, slots=True)
class EventLog:
    """The event log opened under an epoch."""

    writer: SegmentWriter
    reader: BatchReader
    room: EventLogRoom


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a run needs from outside; only ``migrator.wiring.parts`` knows which adapters these are.

    Attributes:
        source: factories of source connections, for the given table schemas.
        prepare: brings our control tables up to date and says what is wrong with the target's revision.
        known_epoch: the highest epoch that the ledger saw.
        event_log: opens it under an epoch, for a ledger.
        spark: the session, started on the first call.
        stager: the target, where executors are to load large batches of dump rows.
        slots: folder that driver and executors share, where each leader has its own for the rows of batches.
        kept: plans of an earlier start of this mapping.
        begun: whether an earlier run has captured something.
        reload: loads ``mapping`` anew: functions of Spark that it made are bound to the JVM of that time.
        hints: where the leader tells onlookers of itself.
        executors: how many a cluster has now; None where that isn't known, or tasks run in this process.
        adopt: given the ledger, makes room for an event log of its own if another machine led meanwhile; what
            it did.
        set_damage_aside: given the ledger, puts an empty event log in a damaged one's place; where that one is now.
        upkeep: of the target's tables, once they are filled; None where nobody wants it.
        reads_replaced: whether all rows of a table are read again that has a captured one's name.
        late: what is done with targets that joined later.
        cutover: its part in cut-overs; None where there is no way back.
        besides: the tables that next mappings fill.
        retries: rows set aside that can be tried again; None where none go aside.
        check_doubts: raises ``RequestError`` for a dump request that may take right rows out of the target.
        changes_only: whether the target has its rows already, as on the way back: nothing is dumped into it.
        keep_until_applied: whether the source may forget only what the target holds: no other machine can go
            on from
            this one's event log, or the user wants a damaged one to be captured again.
    """

    mapping: Mapping
    catalog: SourceCatalog
    source: Callable[[list[TableSchema]], SourcePorts]
    target: Target
    prepare: Callable[[], str | None]
    known_epoch: Callable[[], int]
    leadership: Leadership
    requests: RequestStore
    event_log: Callable[[int, Ledger], EventLog]
    spark: Callable[[], SparkSession]
    slots: Path
    kept: KeptPlans
    begun: Callable[[], bool]
    reload: Callable[[], Mapping]
    hints: Hints
    adopt: Callable[[Ledger], str]
    set_damage_aside: SetAside
    keep_until_applied: bool
    reads_replaced: bool
    capture_limits: CaptureLimits
    apply_limits: ApplyLimits
    executors: Callable[[], int | None] = lambda: None
    changes_only: bool = False
    step: Step = no_step
    late: LateTargets | None = None
    cutover: CutOvers | None = None
    besides: Besides | None = None
    retries: Retries | None = None
    check_doubts: DoubtsCheck = lambda _: None
    stager: Stager | None = None
    upkeep: Upkeep | None = None
