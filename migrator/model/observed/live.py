"""All that the live page tells, as one value: what is known now, the hour before, and the verdict on both."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.cutover.record import Record
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import Observation
from migrator.model.observed.trouble import Trouble
from migrator.model.progress import TableDump
from migrator.model.requests.request import RequestBook


@dataclass(frozen=True, slots=True)
class Live:
    """A run as its page shows it.

    Attributes:
        seen: what is known now.
        hour: the hour before.
        verdict: the worst trouble, or what the run does without any.
        troubles: all that is wrong, the worst first.
        targets: names of the target tables that the ledger knows; none before the first batch.
        book: the dump requests; None: they can't be read.
        requests: the progress of the open ones.
        cutover: the record of the cut-over; None: there is none, or it can't be read.
    """

    seen: Observation
    hour: Hour
    verdict: Trouble
    troubles: tuple[Trouble, ...] = ()
    targets: tuple[str, ...] = ()
    book: RequestBook | None = None
    requests: tuple[TableDump, ...] = ()
    cutover: Record | None = None
