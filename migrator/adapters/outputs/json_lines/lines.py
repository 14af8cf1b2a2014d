"""Change events as lines of JSON: the envelope (docs/reference/events.md), and how a line is found again."""

from __future__ import annotations

import json

from migrator.columnar.events import AFTER, BEFORE, NUMBER, OP, READ
from migrator.columnar.json_values import NULL, images, quoted
from migrator.model.table import TableSchema
from migrator.ports.output import SegmentEvents, TableEvents


def encode(events: SegmentEvents) -> bytes:
    """The segment's events in order, one line each."""
    return b"".join(line for _, line in numbered(events))


def numbered(events: SegmentEvents) -> list[tuple[int, bytes]]:
    """The segment's events in order: number and line."""
    found = [line for table in events.tables for line in _lines(events, table)]
    found.sort(key=lambda line: line[0])
    return [(number, line.encode()) for number, line in found]


def place_of(line: bytes) -> tuple[int, int] | None:
    """Segment and number of the event in a line; None when it isn't a whole line of ours."""
    if not line.endswith(b"\n"):
        return None
    try:
        source = json.loads(line)["source"]
        segment, number = source["segment"], source["number"]
    except (ValueError, KeyError, TypeError):
        return None
    return (segment, number) if isinstance(segment, int) and isinstance(number, int) else None


def _lines(events: SegmentEvents, table: TableEvents) -> list[tuple[int, str]]:
    rows = table.rows.combine_chunks()
    before, after = (images(table.schema, rows[name].combine_chunks()) for name in (BEFORE, AFTER))
    numbers, operations, positions, indexes = (
        rows[name].to_pylist() for name in (NUMBER, OP, "position", "index")
    )
    moment = str(events.committed_at_us // 1000) if events.committed_at_us else NULL
    last, token = events.position.order, quoted(events.position.token)
    head = f'"source":{{{_table(table.schema)},"segment":{events.segment},"number":'
    found = []
    for number, operation, position, index, old, new in zip(
        numbers, operations, positions, indexes, before, after, strict=True
    ):
        snapshot = operation == READ
        ends = position == last  # of this transaction alone the event log holds resume place and commit time
        place = NULL if snapshot else f'{{"order":{position},"token":{token if ends else NULL}}}'
        found.append(
            (
                number,
                f'{{"op":"{operation}","ts_ms":{moment},"before":{old},"after":{new},'
                f'{head}{number},"snapshot":{"true" if snapshot else "false"},"position":{place},'
                f'"index":{NULL if snapshot else index},"ts_ms":{moment if ends else NULL}}}}}\n',
            )
        )
    return found


def _table(schema: TableSchema) -> str:
    key = ",".join(quoted(name) for name in schema.key)
    return (
        f'"schema":{quoted(schema.id.schema)},"table":{quoted(schema.id.name)},"key":[{key}],'
        f'"row_schema":"{schema.version()}"'
    )
