"""The documents of the live page with everything in them, and with nothing known."""

from __future__ import annotations

import json
from dataclasses import replace

from migrator.adapters.observers.live_document import hour_document, live_document
from migrator.core.watched.hour import after
from migrator.core.watched.verdict import troubles, verdict
from migrator.model.cutover.fence import FenceKind, FencePlan
from migrator.model.cutover.record import CutoverPlan, Phase, Record, Took
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.live import Live
from migrator.model.observed.observation import Fallen, Observation
from migrator.model.progress import TableDump
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.table import TableId
from tests.unit.observers.test_declared import FULL
from tests.unit.observers.troubles import BEGAN_US, TROUBLES

FENCE = FencePlan(FenceKind.TRIGGERS, (TableId("shop", "orders"),), "migrator", "moved")
SWITCHING = Record(
    CutoverPlan(FENCE, FENCE),
    turn=1,
    phase=Phase.DRAINING,
    since_s=BEGAN_US / 1e6,
    took=(Took(Phase.FENCING, 0.5), Took(Phase.WAITING, 1.0)),
)
BOOK = RequestBook().start((TableId("shop", "orders"),), WHOLE)
PROGRESS = (TableDump(TableId("shop", "orders"), rows=5, estimated_rows=9, request=BOOK.requests[0].name()),)


def full_live() -> Live:
    """Everything at once."""
    seen, hour = TROUBLES[0].end()
    seen = replace(
        FULL,
        at_us=seen.at_us,
        started_us=BEGAN_US,
        target=seen.target,
        fallen=(Fallen("shop.t", BEGAN_US, 60.0, 0.0),),
    )
    hour = replace(after(hour, seen), fallen=seen.fallen)
    found = troubles(seen, hour, Bounds())
    return Live(seen, hour, verdict(seen, hour, found), found, ("person",), BOOK, PROGRESS, SWITCHING)


def live() -> str:
    return json.dumps(live_document(full_live(), control=True))


def hour() -> str:
    whole = full_live()
    return json.dumps(hour_document(whole.seen, whole.hour))


def nothing_known() -> str:
    seen = Observation("shop", BEGAN_US, BEGAN_US, "standby", "starting")
    hour = after(Hour(), seen)
    return json.dumps(live_document(Live(seen, hour, verdict(seen, hour, ())), control=False))
