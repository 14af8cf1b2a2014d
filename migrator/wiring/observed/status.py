"""The state of a migration as it is known from outside its run: what `migrator status` shows."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import places
from migrator.config.engines import ENGINES
from migrator.config.project import Settings
from migrator.core.lag import seen_once
from migrator.errors import MigratorError
from migrator.model.hint import Hint
from migrator.model.ledger import Ledger
from migrator.model.observed.observation import NOT_BEGUN, STARTING, STOPPED, Applied, Ended, Lag
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import RequestBook
from migrator.model.retention import Retention
from migrator.model.table import TableId
from migrator.run.capture.retention_watch import RetentionWatch
from migrator.run.capture.steps import SourcePorts
from migrator.run.progress import Progress
from migrator.wiring.coordination import hints_for_once, look, own_event_log
from migrator.wiring.source import source_parts
from migrator.wiring.target import filled, peek


@dataclass(frozen=True, slots=True)
class SourceNow:
    """The source's own word, asked for just now.

    Attributes:
        end: where its log ends; None: it gave no answer.
        problem: why it gave none; empty where it did.
        retention: how long it keeps its log; None: unknown.
    """

    end: Position | None = None
    problem: str = "the source wasn't asked"
    retention: Retention | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a migration as it is known from outside its run.

    ``leader`` and ``standbys`` name processes; ``hint`` is what a leader told of itself last, ``leader`` or not.
    ``segments_waiting`` counts the segments that the target hasn't applied; ``dumps`` and ``last_changes``
    (see ``Checkpoint``) are as of the newest segment, by the leader's hint where its event log is on another
    machine; ``outputs`` has, per output of change events, the segment from which on it keeps the event log;
    ``filled`` has the joined targets that are in step, and the segment at which each was filled. ``warnings``
    are the leader's; while nobody leads, the source is asked how long it keeps its log. ``lag`` is by the source's
    word of now and the ledger; ``phase`` is one of ``PHASES``.
    """

    leader: str
    ledger: Ledger | None
    segments_waiting: int
    event_log_bytes: int
    dumps: tuple[TableDump, ...]
    book: RequestBook
    requests: tuple[TableDump, ...]
    outputs: tuple[tuple[str, int], ...] = ()
    last_changes: tuple[tuple[TableId, int], ...] = ()
    filled: tuple[tuple[str, int], ...] = ()
    standbys: tuple[str, ...] = ()
    hint: Hint | None = None
    warnings: tuple[str, ...] = ()
    phase: str = NOT_BEGUN
    source: SourceNow = field(default_factory=SourceNow)
    lag: Lag = field(default_factory=Lag)

    def present_hint(self) -> Hint | None:
        """Returns what the process that leads tells of itself; None: nothing yet, or nobody leads."""
        return told_by(self.leader, self.hint, self.ledger)

    def complete(self) -> bool:
        """Tells whether the target has every table's rows, and every joined target is filled."""
        checkpoint = None if self.ledger is None else self.ledger.checkpoint
        return checkpoint is not None and checkpoint.dump_complete() and not checkpoint.filling


def status(settings: Settings) -> Status:
    """Looks at source, ledger, event log and leadership without taking part. Works while a run is going on."""
    _, ports = source_parts(settings)
    asked = ports([])
    end = _end(asked)  # before the ledger: what is applied meanwhile counts
    ledger = peek(settings)
    after = ledger.segment if ledger is not None else 0
    seen = look(settings)
    hint = seen.hint
    if own_event_log(settings) and hint is not None:
        waiting, bytes_held, newest = max(0, hint.segment - after), hint.event_log_bytes, hint.checkpoint
    else:
        waiting, bytes_held, newest = _event_log_now(settings, after)
    checkpoint = newest or (ledger.checkpoint if ledger is not None else None)
    applied = None if ledger is None or ledger.checkpoint is None else ledger.checkpoint.position
    return Status(
        leader=seen.leader,
        ledger=ledger,
        segments_waiting=waiting,
        event_log_bytes=bytes_held,
        dumps=checkpoint.dumps if checkpoint is not None else (),
        book=seen.book,
        requests=checkpoint.requests if checkpoint is not None else (),
        last_changes=checkpoint.last_changes if checkpoint is not None else (),
        outputs=tuple((at.output, at.place.segment) for _, at in places(Layout.of(settings.event_log()))),
        filled=tuple(filled(settings)) if ledger is not None else (),
        standbys=seen.standbys,
        hint=hint,
        warnings=_warnings(settings, told_by(seen.leader, hint, ledger), checkpoint),
        phase=_phase(seen.leader, told_by(seen.leader, hint, ledger), checkpoint),
        source=_kept(asked, end, None if checkpoint is None else checkpoint.position),
        lag=lag_of(end, applied, hint.applied if hint is not None else None),
    )


def unit_of(settings: Settings) -> str:
    """Names the unit in which this source's positions are apart: ``bytes`` or ``transactions``."""
    return ENGINES[settings.source.kind].positions if settings.log == "server" else "transactions"


def lag_of(source: SourceNow, applied: Position | None, known: Applied | None) -> Lag:
    """The lag of a target by the source's word of now and the target's ledger."""
    now_us = time.time_ns() // 1000
    if source.end is not None:
        return seen_once(source.end, applied, known, now_us)
    last = Lag() if applied is None else seen_once(applied, applied, known, now_us)
    return Lag(None, None, last.at_most_s, source.problem)


def _kept(ports: SourcePorts, found: SourceNow, captured: Position | None) -> SourceNow:
    """Asks how long the source keeps its log, and how much of it; unknown where it gives no answer in time."""
    if ports.retention is None or found.end is None:
        return found
    try:
        return replace(found, retention=ports.retention(captured))
    except MigratorError:
        return found


def _end(ports: SourcePorts) -> SourceNow:
    """Asks where the source's log ends; unknown where it gives no answer in time."""
    if ports.meter is None:
        return SourceNow()
    meter = ports.meter()
    try:
        return SourceNow(meter.end(), "")
    except MigratorError as error:
        return SourceNow(None, error.what)
    finally:
        meter.close()


def told_by(leader: str, hint: Hint | None, ledger: Ledger | None) -> Hint | None:
    """The hint, where the process that leads has left it and not the one before it."""
    known = ledger.epoch if ledger is not None else 0
    return hint if hint is not None and leader and hint.of_epoch(known) else None


def _phase(leader: str, hint: Hint | None, checkpoint: Checkpoint | None) -> str:
    if leader:
        return hint.phase if hint is not None and hint.phase else STARTING
    return NOT_BEGUN if checkpoint is None else STOPPED


def _warnings(settings: Settings, hint: Hint | None, checkpoint: Checkpoint | None) -> tuple[str, ...]:
    """The leader's; of a migration that has begun and whose leader tells none: what the source would warn of."""
    if hint is not None:
        return hint.warnings
    _, ports = source_parts(settings)
    ask = ports([]).retention
    if checkpoint is None or ask is None:
        return ()
    progress = Progress()
    progress.set(captured=checkpoint.position)
    RetentionWatch(ask, progress, checkpoint).look(time.monotonic())
    return progress.snapshot().warnings


def _event_log_now(settings: Settings, after: int) -> tuple[int, int, Checkpoint | None]:
    """Returns of this machine's event log: segments that wait, bytes, and the checkpoint of the newest that waits."""
    if not settings.event_log().exists():
        return 0, 0, None
    reader = FileBatchReader(settings.event_log())
    waiting = list(reader.manifests(after))
    return len(waiting), reader.total_bytes(), waiting[-1].checkpoint if waiting else None


def note_end(settings: Settings, epoch: int, ended: Ended) -> None:
    """Leaves a hint of how a leader's run ended; where that place can't be reached, nobody learns it there.

    ``epoch``: of the leader. Another one's hint, of a later epoch, stays.
    """
    if not epoch:
        return  # it never led
    with suppress(MigratorError), hints_for_once(settings) as place:
        last = place.read()
        if last is None or last.epoch <= epoch:
            place.publish(replace(last or Hint(epoch, ended.at_us), epoch=epoch, ended=ended))
