"""One placed race through the core: what it delivers when the log's records and a chunk come in a given order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrator.core.capture import Capture, EmitChunk, EmitPart
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk
from migrator.model.event import LogRecord
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from tests.integration.sources.hot_dump import drop_keys

TOKEN = "race-1"
"""Of the first chunk's watermarks."""


def delivered(schema: TableSchema, inputs: Sequence[LogRecord | Chunk], *, marks: bool = False) -> list[str]:
    """The values of column ``v`` that the core delivers, of the log and of the chunk, in order.

    The table has one row. The chunk's request was made before the first input; with ``marks`` it carries ``TOKEN``.
    """
    plan = DumpPlan([TableDump(schema.id)], 10, token_prefix="race-" if marks else "")
    core = Capture(Checkpoint(Position(-1, ""), dumps=plan.dumps()), {schema.id: schema}, plan, drop_keys)
    request = core.next_request()
    assert request is not None
    values = []
    placed = False
    for item in inputs:
        outputs = (
            core.on_chunk(replace(item, request=request)) if isinstance(item, Chunk) else core.on_record(item)
        )
        for output in outputs:
            if isinstance(output, EmitPart):
                values += [str(change.after[1]) for change in output.part.changes if change.after]
            elif isinstance(output, EmitChunk):
                placed = True
                values += [str(value) for value in output.rows["v"].to_pylist()]
    assert placed, "the chunk still waits for its place in the log"
    return values
