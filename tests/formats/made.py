"""One of each thing that rests in files, ZooKeeper or a ledger, with values that a reader must give back.

Written once by ``python -m tests.formats.write tests/formats/<n>``, by the version that began that set of formats.
Never written anew: a changed format gets a folder of its own beside the old ones, which must stay readable.
"""

from __future__ import annotations

from migrator.adapters.event_log.files.places import StoredPlace
from migrator.model.hint import Hint
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import Pace, RequestBook, Scope
from migrator.model.table import TableId
from migrator.ports.eventlog import ReaderPlace, SegmentContent
from tests.contract.event_log.eventlog_content import content, dump_rows, images, inserted

ITEMS = TableId("public", "item")
CHECKPOINT = Checkpoint(
    Position(7, "0/7@1"),
    partial_order=8,
    partial_index=3,
    unconfirmed=(("9", 10),),  # type: ignore[arg-type]  # no number, and the kept files have it so
    dumps=(TableDump(ITEMS, after=("a", b"\x00", None), rows=5, chunks=2, estimated_rows=9),),
    requests=(TableDump(ITEMS, request="r1.0"),),
    passes=((ITEMS, "r1.0"),),
    last_changes=((ITEMS, 1_700_000_000_000_000),),
)
BOOK = RequestBook(pace=Pace(chunk_rows=100, workers=3)).start((ITEMS,), Scope(predicate="näh > '\x00'"))
HINT = Hint(3, 1_700_000_000_000_000, 42, 9_999, CHECKPOINT, "näh", ("capture waits",))
PLACE = StoredPlace("json:/x", False, ReaderPlace(1, 1, 3, 1, ("item",), 17))
EPOCH = 3


def segments() -> list[SegmentContent]:
    """A segment with dump rows and images, a transaction over two segments, and a TRUNCATE with a row after it."""
    return [
        content(1, dump_rows((1, "a"), (2, "b")), images((1, 0, 1, 3, "c"))),
        inserted(2, 4, ends=False),
        inserted(2, 5),
        content(4, images((4, 0, 0, None, None), (4, 1, 1, 6, "f"))),
    ]
