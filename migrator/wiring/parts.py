"""The only place that chooses adapters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingType
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from migrator import schema as control
from migrator.adapters.event_log.changed_keys import ChangedKeysFiles
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import newest_manifest
from migrator.adapters.event_log.files.room import FileRoom
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.event_log.files.set_aside import set_damage_aside
from migrator.config.project import Settings
from migrator.config.way_back import has_way_back
from migrator.core.hold import MOST_ROWS
from migrator.errors import ConfigError
from migrator.model.grants import Grants
from migrator.model.ledger import Ledger
from migrator.model.limits import SET_ASIDE
from migrator.model.position import Position
from migrator.model.progress import BadRow, TableDump
from migrator.model.remaps.remap import beside_name
from migrator.model.requests.request import DumpRequest, RequestBook, new_token, number_of
from migrator.model.sequence import Advance
from migrator.ports.requests import RequestStore
from migrator.ports.sequences import TargetNumbers
from migrator.ports.source import SourceCatalog
from migrator.run.analysed import source_tables
from migrator.run.apply.set_aside import with_rows_aside
from migrator.run.apply.surrogates import with_key_maps
from migrator.run.beside import beside
from migrator.run.commands import hand_over
from migrator.run.commands.dump_order import DumpOrder, checked
from migrator.run.commands.repair import Way, check_doubts, repair_steps, start_repair, wanted_of
from migrator.run.cutover.listed_keys import ListingTarget
from migrator.run.kept_plans import KeptPlans
from migrator.run.lead.carried import LateTargets
from migrator.run.lead.retries import Retries
from migrator.run.parts import EventLog, Parts
from migrator.run.steps import Step, step_hook
from migrator.wiring import target as wiring_target
from migrator.wiring.coordination import (
    adopt,
    hints,
    leadership,
    own_event_log,
    requests,
)
from migrator.wiring.in_force import load_applied
from migrator.wiring.revisions import prepare
from migrator.wiring.source import (
    source_grants,
    source_numbers,
    source_parts,
    source_script,
)
from migrator.wiring.spark import (
    executors_now,
    executors_read,
    executors_stage,
    spark,
    surroundings,
)
from migrator.wiring.target import (
    forget_filled,
    holds_rows,
    identity_stays,
    known_epoch,
    peek,
    tables_made,
    target_besides,
    target_database,
    target_grants,
    target_key_maps,
    target_upkeep,
    target_writer,
)
from migrator.wiring.under_cutover import refuse_under_cutover, was_handed_over
from transforms.load import load_mapping
from transforms.on_spark.session import running_session
from transforms.registry import Mapping


def parts(
    settings: Settings,
    master: str | None = None,
    conf: MappingType[str, str] | None = None,
    load: Callable[[Path, Callable[[], SparkSession]], Mapping] = load_mapping,
) -> Parts:
    """Everything a run needs, with the adapters that the settings name.

    Args:
        settings: the project's configuration.
        master: Spark master that overrides the configuration's.
        conf: ``spark.*`` options that override the configuration's.
        load: reads the mapping; ``read_mapping`` for those who look at what is broken as well.

    Raises ``MappingError`` for a mapping file that can't be used. Connects to nothing yet.
    """
    step = step_hook(os.environ)
    catalog, ports = source_parts(settings, step, executors_read(settings))
    loaded = load(settings.mapping, lambda: spark(settings, master, conf))
    surrogates = {mapped.name: dict(mapped.surrogates) for mapped in loaded if mapped.surrogates}
    surrogates |= {beside_name(name): surrogates[name] for name in loaded.nexts if name in surrogates}
    writer, stager = target_writer(settings, step)
    retries = _retries(settings, master, conf)
    writer = with_rows_aside(writer, settings.apply, step, retries.came)
    if has_way_back(settings):
        listed = ChangedKeysFiles(settings.changed_keys())
        writer = ListingTarget(writer, listed, partial(wiring_target.peek, settings))
    target, stager = with_key_maps(writer, stager, surrogates, lambda: target_key_maps(settings))
    return Parts(
        mapping=loaded,
        catalog=catalog,
        source=ports,
        target=target,
        prepare=lambda: prepare(settings),
        known_epoch=lambda: known_epoch(settings),
        leadership=leadership(settings),
        requests=requests(settings),
        event_log=partial(_event_log, settings, step),
        spark=lambda: spark(settings, master, conf),
        executors=lambda: executors_now(master or settings.spark.master),
        slots=settings.state / "slots",
        kept=_kept(settings, master, conf),
        begun=lambda: bool(Layout.of(settings.event_log()).numbers()),
        reload=lambda: load_mapping(settings.mapping, lambda: spark(settings, master, conf)),
        hints=hints(settings),
        adopt=lambda ledger: adopt(settings, ledger),
        set_damage_aside=partial(set_damage_aside, settings.event_log()),
        keep_until_applied=settings.keep_until_applied or own_event_log(settings),
        reads_replaced=settings.replaced_tables == "read_again",
        capture_limits=settings.capture,
        apply_limits=settings.apply,
        changes_only=settings.reversed,
        step=step,
        late=_late(settings),
        besides=target_besides(settings, step),
        retries=retries if settings.apply.bad_rows == SET_ASIDE else None,
        check_doubts=lambda request: _check_doubts(settings, master, conf, request),
        stager=stager if executors_stage(settings, master or settings.spark.master) else None,
        upkeep=target_upkeep(settings) if settings.apply.upkeep else None,
    )


def _kept(settings: Settings, master: str | None, conf: MappingType[str, str] | None) -> KeptPlans:
    path = settings.state / "plans.json"
    return KeptPlans(path, lambda: surroundings(settings, conf), lambda: spark(settings, master, conf))


def _event_log(settings: Settings, step: Step, epoch: int, ledger: Ledger) -> EventLog:
    fresh = FreshSegments()
    after, applied = ledger.segment, ledger.segment_id
    writer = FileSegmentWriter(
        settings.event_log(), epoch, after=after, applied=applied, fresh=fresh, step=step
    )
    limits = settings.capture
    keep_bytes = min(limits.keep_applied_bytes, limits.backlog_bytes // 2)
    reader = FileBatchReader(settings.event_log(), fresh=fresh, keep_bytes=keep_bytes)
    return EventLog(writer, reader, FileRoom(settings.event_log(), writer, reader))


def _late(settings: Settings) -> LateTargets:
    return LateTargets(
        partial(holds_rows, settings),
        partial(forget_filled, settings),
        frozenset(settings.accepted),
        partial(tables_made, settings),
        identity_stays(settings),
        lambda act, detail: wiring_target.acts(settings).add(act, settings.reason, detail),
        lambda: [name for name, _ in wiring_target.filled(settings)],
        renamed_to=partial(wiring_target.renamed_to, settings),
        alone=lambda: not settings.reversed and not was_handed_over(settings),
    )


def _check_doubts(
    settings: Settings, master: str | None, conf: MappingType[str, str] | None, request: DumpRequest
) -> None:
    check_doubts(
        parts(settings, master, conf, partial(load_applied, settings)),
        request,
    )


def _retries(settings: Settings, master: str | None, conf: MappingType[str, str] | None) -> Retries:
    rows = partial(wiring_target.bad_rows, settings)
    return Retries(rows, partial(_retried, settings, master, conf), requests(settings))


def _retried(
    settings: Settings, master: str | None, conf: MappingType[str, str] | None, rows: Sequence[BadRow]
) -> str:
    """Has source rows of rows set aside dumped again, parents first; in words, what is too much for that."""
    refuse_under_cutover(settings, "a dump")
    again = parts(settings, master, conf, partial(load_applied, settings))
    wanted = wanted_of([one for one in rows if one.target in again.mapping])
    steps = repair_steps(again, wanted)[::-1]
    little = [step for step in steps if step.work <= MOST_ROWS]
    for step in little:
        if step.way is Way.REMAP:
            forget_filled(settings, step.target)
    start_repair(request_book(settings), little)
    names = ", ".join(dict.fromkeys(step.target for step in steps if step not in little))
    if not names:
        return ""
    return (
        f"rows of {names} are set aside whose parent came; to try them reads more than {MOST_ROWS:,} source rows:"
        " `migrator rows retry` does"
    )


def grants(settings: Settings) -> list[Grants]:
    """The least rights of both logins, for what the mapping reads and writes. Connects to nothing.

    Raises ``MappingError`` for a mapping file that can't be used.
    """
    loaded = mapping(settings)
    needs = beside(loaded)
    names = [target.name for target in loaded]
    target = target_grants(settings, names, needs.mirror, needs.key_maps)
    return [source_grants(settings, source_tables(loaded)), target]


def mapping(settings: Settings) -> Mapping:
    """The mapping alone, for commands that map nothing. Raises ``MappingError``."""
    return load_mapping(settings.mapping, lambda: running_session() or spark(settings, "local[1]"))


def start_dump(settings: Settings, order: DumpOrder, known: Sequence[str] | None = None) -> RequestBook:
    """Checks an order against mapping and source, and files it as the book's last request.

    ``known``: names of the source tables that the mapping reads, for who has it loaded.
    """
    read = source_tables(mapping(settings)) if known is None else known
    tables, scope = checked(order, read, source_catalog(settings))
    refuse_under_cutover(settings, "a dump")
    return request_book(settings).update(lambda book: book.start(tables, scope, token=new_token()))


def request_book(settings: Settings) -> RequestStore:
    """Returns the store for new dump requests. A lost one's names, which are known still, aren't given again."""
    store = requests(settings)
    if store.read().started == 0:
        newest, ledger = newest_manifest(Layout.of(settings.event_log())), peek(settings)
        places = [holder.checkpoint for holder in (newest, ledger) if holder is not None]
        known = [
            number_of(name)
            for checkpoint in places
            if checkpoint is not None
            for name in checkpoint.dumps_named()
        ]
        if known:
            store.update(lambda book: book.behind(max(known)))
    return store


def dumps_asked_for(settings: Settings) -> tuple[RequestBook, tuple[TableDump, ...]]:
    """All dump requests, and the progress of the open ones as of the newest segment."""
    book = requests(settings).read()
    hint = hints(settings).read() if own_event_log(settings) else None
    if hint is not None and hint.checkpoint is not None:
        return book, hint.checkpoint.requests
    newest = newest_manifest(Layout.of(settings.event_log()))
    if newest is not None:
        return book, newest.checkpoint.requests
    ledger = peek(settings)
    return book, ledger.checkpoint.requests if ledger is not None and ledger.checkpoint is not None else ()


def source_catalog(settings: Settings) -> SourceCatalog:
    """The source's structure. Connects to nothing yet."""
    catalog, _ = source_parts(settings)
    return catalog


def change_table_script(settings: Settings) -> str:
    """The SQL that makes change tables and triggers for the mapping's source tables. Only reads the source.

    Raises ``ConfigError`` where no change tables are configured, ``SourceError``, ``MappingError``.
    """
    script = source_script(settings)
    if script is None:
        raise ConfigError(
            "this project reads the source's own log",
            where="source.log",
            remedy='set log = "change_tables" in [source] first (docs/how-to/change-tables.md)',
        )
    return script(source_tables(mapping(settings)))


def revision_problem(settings: Settings) -> str | None:
    """Returns what is wrong with the target's revisions (the user's own), or None. Changes nothing."""
    if settings.reversed:
        return None  # the old schema has no revisions of ours
    schema = settings.target.schema or None
    return control.target_head_problem(target_database(settings), settings.alembic, schema)


def upgrade_user_target(settings: Settings, *, found: bool = False) -> None:
    """Runs the project's own Alembic revisions on the target; ``found``: its tables are there, and all count as run
    where none is noted."""
    manner = control.Manner(settings.target.schema, found=found)
    control.upgrade_user_target(target_database(settings), settings.alembic, manner=manner)


def source_position(settings: Settings) -> Position:
    """A place in the source log at or after everything committed by now."""
    return source_catalog(settings).position()


def target_numbers(settings: Settings) -> TargetNumbers:
    """Returns the generators of numbers in the target. Connects to nothing yet."""
    return wiring_target.target_numbers(settings)


def advances(
    settings: Settings,
    margin: int,
    with_source: bool,
    master: str | None = None,
    conf: MappingType[str, str] | None = None,
) -> list[Advance]:
    """Returns the hand-over's step for each of the target's sequences (see ``run.hand_over``). Changes nothing."""
    source = source_numbers(settings) if with_source else None
    return hand_over.advances(parts(settings, master, conf), target_numbers(settings), source, margin)


def applied_reaches(settings: Settings, position: Position) -> bool:
    """Tells whether the target holds everything up to ``position``."""
    ledger = peek(settings)
    return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.position >= position
