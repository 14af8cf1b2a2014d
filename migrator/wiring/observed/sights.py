"""The questions of an observer, as this project's adapters answer them."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.read_results import ReadResults
from migrator.config.project import Settings
from migrator.config.way_back import has_way_back
from migrator.model.cutover.record import Record
from migrator.model.observed.observation import Judged, Room, VerifiedTable
from migrator.run.observe.observer import Seen, Sights
from migrator.schema.cutovers import Copy
from migrator.wiring.coordination import look
from migrator.wiring.target import peek, target_database
from transforms.on_spark.heap import heap
from verify.tables.coverage import TableCoverage, read_coverage

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def sights(settings: Settings) -> Sights:
    """Returns the questions. They connect when they are asked."""
    return Sights(
        ledger=partial(peek, settings),
        seen=partial(_seen, settings),
        judged=partial(_judged, settings),
        files=partial(_files, settings),
        memory=_memory,
        cutover=_cutover(settings),
        heap=heap,
    )


def _cutover(settings: Settings) -> Callable[[], Record | None]:
    """The question for the record on this way's target: that side can be reached in every step."""
    if not settings.reversed and not has_way_back(settings):
        return lambda: None
    name = settings.counterpart if settings.reversed else settings.name
    return Copy(target_database(settings), name, settings.target.url()).read


def _seen(settings: Settings) -> Seen:
    found = look(settings)
    return Seen(found.leader, len(found.standbys), found.hint, found.book)


def _judged(settings: Settings) -> Judged:
    covered = read_coverage(settings.reports())
    reads: Counter[str] = Counter()
    shapes = ReadResults(settings.state).read()
    for shape in shapes:
        reads.update(
            {"settled": shape.settled, "lag": shape.lag, "wrong": shape.wrong, "unknown": shape.unknown}
        )
    tables = () if covered is None else tuple(map(_table, covered.tables))
    wrong_us = min((int(one.at_s * 1e6) for one in shapes if one.wrong), default=None)
    return Judged(tables, tuple(sorted(reads.items())), "" if covered is None else covered.problem, wrong_us)


def _table(one: TableCoverage) -> VerifiedTable:
    return VerifiedTable(
        one.table, one.verdict, one.at_us, one.key_share(), one.column_share(), one.differing
    )


def _files(settings: Settings) -> Room:
    folder = settings.state
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    log = settings.event_log()
    held = Layout.of(log).total_bytes() if log.exists() else 0
    return Room(None, held, shutil.disk_usage(folder).free)


def _memory() -> tuple[tuple[str, int], ...]:
    """Resident bytes of this process and of its JVM, where the system shows them."""
    found = [("python", _resident(os.getpid()))]
    found += [("jvm", _resident(child)) for child in _children() if _name(child) == "java"]
    return tuple((name, size) for name, size in found if size)


def _resident(process: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def _name(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def _children() -> Iterator[int]:
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())
