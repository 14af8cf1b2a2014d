"""The record of a cut-over, read again and again while a command waits for what it has asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from migrator.cli.cutover.accepted import accepted
from migrator.errors import ConnectionFailed
from migrator.model.cutover.record import Record
from migrator.ports.cutover import CutoverBook

LOOK_S = 0.2
_LOST = "the record can't be reached{why}; what was asked for stays asked for, and is waited for"


def looks(with_book: CutoverBook, wait_s: float) -> Iterator[Record]:
    """Yields the record until the wait is over.

    The side that has it may be lost for a while, which is no reason for the leader to give up: it is said once, and
    waited for. Raises ``CutoverError`` where the record is gone.
    """
    until, lost = time.monotonic() + wait_s, False
    while time.monotonic() < until:
        try:
            record = accepted(with_book)
        except ConnectionFailed as error:
            if not lost:
                why = f": {' '.join(error.cause.split())}" if error.cause else ""
                click.echo(_LOST.format(why=why), err=True)
            lost = True
        else:
            lost = False
            yield record
        time.sleep(LOOK_S)
