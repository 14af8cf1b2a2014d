"""A run that conducts cut-overs, as a process of its own, and how the record stands."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.model.cutover.record import Phase, Record, Side, Wanted
from migrator.wiring.cutover import book
from migrator.wiring.target import peek
from tests.integration.cutover.two_way import TwoWay
from tests.integration.waiting import await_true


def record_of(project: TwoWay) -> Record:
    """The record of the cut-over, as the old side has it."""
    kept = book(configuration.load(project.config))
    try:
        record = kept.read()
    finally:
        kept.close()
    assert record is not None
    return record


@contextmanager
def leading(project: TwoWay, crash_at: str = "") -> Iterator[subprocess.Popen[str]]:
    """``migrator run`` as a process, which ends with the block."""
    process = project.process("run", "--plain", crash_at=crash_at)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        print(process.communicate(timeout=90)[0][-3000:])


def ready(project: TwoWay) -> None:
    """Waits until both ways have applied something: Spark starts, and the way back begins."""
    back = way_back(configuration.load(project.config))
    await_true(lambda: (found := peek(back)) is not None and found.checkpoint is not None, "it is warm", 300)


def settled(project: TwoWay) -> bool:
    """Tells whether nothing is under way or wanted."""
    record = record_of(project)
    return record.phase is Phase.IDLE and record.wanted is Wanted.NOTHING


def open_side(project: TwoWay) -> Side:
    """The side that is open while nothing is under way."""
    record = record_of(project)
    assert record.phase is Phase.IDLE
    return record.open_side
