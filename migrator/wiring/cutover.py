"""A cut-over's parts, as the settings choose them: the record, both sides, the hook, and the leader's thread."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from migrator.adapters.hooks.command import SwitchHook
from migrator.config.cutover import CutoverSettings, FenceChoice
from migrator.config.project import Settings
from migrator.config.way_back import has_way_back, way_back
from migrator.core import cutover as rules
from migrator.errors import ConfigError, CutoverError, FencedError, MigratorError
from migrator.model.cutover.fence import FenceKind, FencePlan, Survey
from migrator.model.cutover.record import CutoverPlan, Effort, Phase, Record, Side, Verify, Wanted, What
from migrator.model.finding import Finding
from migrator.model.table import TableId
from migrator.ports.cutover import CutoverSide
from migrator.ports.fence import Fence
from migrator.ports.remains import Kind
from migrator.run.commands import hand_over
from migrator.run.cutover.conductor import Conductor, Sides
from migrator.run.cutover.gate import PASSED, CutOvers, Gate
from migrator.run.cutover.patient import PatientBook, PatientSide
from migrator.run.cutover.reverse_process import ReverseProcess
from migrator.run.cutover.stream_side import StreamSide
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step
from migrator.schema.cutovers import Book, Copy
from migrator.wiring import parts as wiring
from migrator.wiring.coordination import leadership, look
from migrator.wiring.fences import source_fence, target_fence
from migrator.wiring.gates.judge import ChangedRows
from migrator.wiring.gates.structure import Structures
from migrator.wiring.source import source_numbers, source_remains
from migrator.wiring.spark import spark
from migrator.wiring.target import peek, target_database, target_remains

_AGAIN_S = 1.0
_LIVE = Effort(20.0, at_rest=False, all_of_it=False)
"""Longest comparison while everybody can write; what doesn't settle then is compared again when nobody can."""
_ROUND_TRIP_LOOK_S = 0.05


def cutover_settings(settings: Settings) -> CutoverSettings:
    """Returns the settings of cut-overs. Raises ``ConfigError`` for settings that weren't read from a file."""
    if settings.cutover is None:
        raise ConfigError("these settings have no part about cut-overs", remedy="please report it")
    return settings.cutover


def fences(settings: Settings, step: Step = no_step) -> dict[Side, Fence]:
    """Returns the fences of both sides. Connects to nothing yet."""
    chosen = cutover_settings(settings)
    return {
        Side.OLD: source_fence(settings, chosen.old.fencer, step),
        Side.NEW: target_fence(settings, chosen.new.fencer, step),
    }


def book(settings: Settings) -> Book:
    """Returns the record on both sides. Connects to nothing yet."""
    back = way_back(settings)
    return Book(
        Copy(target_database(back), settings.name, back.target.url()),
        Copy(target_database(settings), settings.name, settings.target.url()),
    )


def unlike(settings: Settings) -> list[Finding]:
    """Returns why the way of these settings can't be one of two that face each other. Connects to nothing."""
    if settings.log != "change_tables":
        return []
    problem = "triggers fill change tables with what the way back writes as well: it would be carried back"
    return [
        Finding(
            "change_tables",
            "source.log",
            problem,
            "read the server's own log, then look at `migrator cutover plan`",
        )
    ]


def planned(settings: Settings) -> tuple[CutoverPlan, dict[Side, Survey]]:
    """Returns the plan that an operator may accept, and what both servers say about fences."""
    chosen, back = cutover_settings(settings), way_back(settings)
    there, backwards = wiring.parts(settings), wiring.parts(back)
    old = there.catalog.tables(sorted({name for one in there.mapping for name in one.sources}))
    new = there.target.tables([one.name for one in there.mapping])
    read = backwards.catalog.tables(sorted({name for one in backwards.mapping for name in one.sources}))
    written = backwards.target.tables([one.name for one in backwards.mapping])
    tables = {
        Side.OLD: sorted({schema.id for schema in old} | {table.id for table in written}),
        Side.NEW: sorted({table.id for table in new} | {schema.id for schema in read}),
    }
    logins = {Side.OLD: back.target.user, Side.NEW: settings.target.user}
    both = fences(settings)
    surveys = {side: both[side].survey(tables[side], logins[side]) for side in Side}
    choices = {Side.OLD: chosen.old, Side.NEW: chosen.new}
    urls = {Side.OLD: settings.target.address, Side.NEW: settings.source.address}
    plans = {
        side: _fence_plan(choices[side], surveys[side], tables[side], logins[side], urls[side], chosen)
        for side in Side
    }
    plan = CutoverPlan(
        plans[Side.OLD],
        plans[Side.NEW],
        chosen.hook,
        chosen.hook_s,
        chosen.pause_s,
        chosen.grace_s,
        chosen.end_transactions,
        chosen.verify,
        chosen.verify_s,
        chosen.reads_hook,
    )
    return plan, surveys


def _fence_plan(
    choice: FenceChoice,
    survey: Survey,
    tables: list[TableId],
    login: str,
    elsewhere: str,
    chosen: CutoverSettings,
) -> FencePlan:
    kind = FenceKind(choice.kind) if choice.kind else survey.advised(choice.roles)
    if kind is None:
        raise CutoverError(
            "no kind of fence can be raised",
            where=", ".join(map(str, tables[:3])),
            cause="; ".join(obstacle for one in survey.choices for obstacle in one.obstacles),
            remedy="give the login what is named",
        )
    return FencePlan(
        kind,
        tuple(tables),
        login,
        f"this database was handed over: write to {elsewhere}"[:128],
        choice.roles,
        chosen.accepted_ways,
    )


def part_of(settings: Settings, step: Step) -> CutOvers | None:
    """Returns a run's part in cut-overs; None where the project has no way back."""
    if settings.reversed:
        own = Copy(target_database(settings), settings.counterpart, settings.target.url())
        return CutOvers(Gate(Side.NEW, own.read))
    if not has_way_back(settings):
        return None
    own = Copy(target_database(settings), settings.name, settings.target.url())
    gate = Gate(Side.OLD, own.read)
    return CutOvers(gate, partial(_conduct, settings, gate, step), partial(undone_unled, settings))


def undone_unled(settings: Settings, why: str, final: bool) -> str:
    """Undoes the switch under way, if there is one, as a leader that does nothing else.

    Needs the side that was open, and nothing of the run: no mapping, no Spark.

    Args:
        settings: of the way there.
        why: the reason that the record keeps.
        final: undo at once; else only what an operator aborted, or what is past its limit.

    Returns what became of it in words; empty where there is nothing to undo, or another process leads.
    """
    if settings.reversed or not has_way_back(settings):
        return ""
    kept = PatientBook(partial(book, settings))
    try:
        record = kept.read()
        if record is None or not (record.under_way or record.wanted is Wanted.ABORT):
            return ""
        due = rules.due_to_undo(record, time.time())
        if not (final or due or record.phase is Phase.UNDOING):
            return ""
        held = leadership(settings)
        lease = held.acquire(0)
        try:
            if lease.epoch <= kept.last_epoch():
                return f"{_left(record)} from here: a leader with another state folder wrote its record"
            _conductor(settings, kept, Sides(fences(settings), {}), lease.epoch).let_go(due or why)
        finally:
            held.release()
        record = kept.read()
        return f"{_left(record)}: {record.reason}" if record is not None else ""
    except FencedError:
        return ""  # whoever leads sees to it
    except MigratorError as error:
        return f"the cut-over can't be undone: {error}"
    finally:
        kept.close()


def _left(record: Record) -> str:
    """Words for how a switch stands that nobody goes on with."""
    if record.under_way:
        return f"the cut-over is in step {record.phase}, and nobody leads"
    return f"the {record.open_side} side is open"


def _conduct(
    settings: Settings, gate: Gate, step: Step, epoch: int, stopping: Stopping, progress: Progress
) -> None:
    """The leader's thread. Whatever can't be done now is tried again: a side may be fenced."""
    back, chosen = way_back(settings), cutover_settings(settings)
    kept = PatientBook(partial(book, settings))
    numberings = {Side.OLD: _Numbering(back), Side.NEW: _Numbering(settings)}
    structures = Structures(settings, back, partial(spark, settings))
    facing = _sides(settings, back, gate, numberings, structures)
    sides = {side: PatientSide(side, one) for side, one in facing.items()}
    reverse = ReverseProcess(settings.file, back.state / "run.log")
    conductor = replace(
        _conductor(settings, kept, Sides(fences(settings, step), sides), epoch),
        give_up=partial(_given_up, back, reverse),
        ready=lambda record: (
            rules.other_hooks(record, chosen.hook, chosen.reads_hook)
            or _not_ready(settings, back)
            or ("" if record.wanted is Wanted.NOTHING else structures.why_not(record.opens))
            or _compared(sides, numberings, record)
        ),
        step=step,
    )
    try:
        while not stopping.requested():
            rest, said = _AGAIN_S, ""
            try:
                record = kept.read()
                if record is not None and record.phase is not Phase.FINISHED:
                    said = reverse.keep()
                elif record is not None:
                    reverse.end()
                rest = conductor.look()
            except FencedError:
                raise
            except MigratorError as error:
                said = f"the cut-over waits: {error}"
            progress.warn("cut-over", *filter(None, [said]))
            stopping.wait(rest)
    finally:
        reverse.end()
        kept.close()


def _conductor(settings: Settings, kept: PatientBook, both: Sides, epoch: int) -> Conductor:
    """Returns one that can undo: it begins no switch, and finishes none."""
    chosen = cutover_settings(settings)
    hook = SwitchHook(
        {What.WRITES: chosen.hook, What.READS: chosen.reads_hook},
        settings.name,
        {Side.OLD: settings.source, Side.NEW: settings.target},
    )
    return Conductor(kept, both, hook, epoch, give_up=lambda: None)


def _given_up(back: Settings, reverse: ReverseProcess) -> None:
    """Ends the way back and removes what it has made for itself: slot, publication, mirror, ledger, state folder.
    Rows that it brought stay."""
    reverse.end()
    for place in (source_remains(back), target_remains(back, [], key_maps=False)):
        found = place.found().left
        for kind in (kind for kind in Kind if kind is not Kind.ROWS):
            if lefts := [left for left in found if left.kind is kind]:
                place.remove(lefts)
    shutil.rmtree(back.state, ignore_errors=True)


def _sides(
    settings: Settings,
    back: Settings,
    gate: Gate,
    numberings: Mapping[Side, _Numbering],
    structures: Structures,
) -> dict[Side, StreamSide]:
    running = partial(spark, settings)  # the leader's, which runs already
    return {
        Side.OLD: StreamSide(
            partial(wiring.source_position, settings),
            partial(wiring.applied_reaches, settings),
            gate.waiting,
            numberings[Side.OLD],
            partial(structures.of, Side.OLD),
            ChangedRows(settings, running).compare,
        ),
        Side.NEW: StreamSide(
            partial(wiring.source_position, back),
            partial(wiring.applied_reaches, back),
            partial(_passed_back, back),
            numberings[Side.NEW],
            partial(structures.of, Side.NEW),
            ChangedRows(back, running).compare,
        ),
    }


class _Numbering:
    """Moves the sequences of a migration's target. Which columns are copies is asked of the mapping once."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._copies: hand_over.Copies | None = None

    def copies(self) -> hand_over.Copies:
        """Returns the columns that are copies. Spark plans the mapping for it: not while nobody can write."""
        if self._copies is None:
            self._copies = hand_over.copied_columns(wiring.parts(self._settings))
        return self._copies

    def __call__(self) -> None:
        settings = self._settings
        parts, numbers = wiring.parts(settings), wiring.target_numbers(settings)
        found = hand_over.advances(parts, numbers, source_numbers(settings), known=self.copies())
        if failed := [one for one in found if one.problem]:
            raise CutoverError(
                f"{len(failed)} sequence(s) can't be moved",
                where=", ".join(one.sequence.name for one in failed),
                cause=failed[0].problem,
                remedy=failed[0].remedy or "look at `migrator sequences`",
            )
        numbers.move([one for one in found if one.moves()])


def _passed_back(back: Settings) -> str:
    """Returns what the way back's process says of changes that passed the new side's fence."""
    with suppress(MigratorError):
        hint = look(back).hint
        return next((one for one in hint.warnings if PASSED in one), "") if hint is not None else ""
    return ""


def _not_ready(settings: Settings, back: Settings) -> str:
    """Returns why a switch can't begin; empty where it can."""
    for name, one in (("there", settings), ("back", back)):
        ledger = peek(one)
        checkpoint = None if ledger is None else ledger.checkpoint
        if checkpoint is None:
            return f"the way {name} hasn't applied anything yet"
        if checkpoint.dumping() or checkpoint.filling:
            return f"the way {name} isn't complete: its dump, or the filling of a target, is under way"
        if checkpoint.bad_rows:
            return f"{len(checkpoint.bad_rows)} row(s) of the way {name} are set aside (`migrator rows set-aside`)"
    limit_s = cutover_settings(settings).max_lag_s
    for name, one in (("there", settings), ("back", back)):
        if not _within(limit_s, partial(wiring.applied_reaches, one, wiring.source_position(one))):
            return f"the way {name} lags by more than {limit_s:g} s"
    return ""


def _compared(
    sides: Mapping[Side, CutoverSide], numberings: Mapping[Side, _Numbering], record: Record
) -> str:
    """Does ahead what would take time while nobody can write; returns what stands in the way of a switch, else empty.

    Plans which columns are copies, and compares what has changed so far.
    """
    if record.wanted is Wanted.NOTHING:
        return ""  # reads alone are to be pointed: the dual reads have judged
    numberings[record.opens].copies()
    if record.plan.verify is Verify.NOTHING:
        return ""
    side = record.open_side
    try:
        sides[side].compare(record.equal(side), _LIVE)
    except CutoverError as error:
        return str(error)
    return ""


def _within(limit_s: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(_ROUND_TRIP_LOOK_S)
    return True
