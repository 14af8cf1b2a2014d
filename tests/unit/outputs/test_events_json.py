"""Values and envelopes of JSON lines, letter by letter as docs/reference/events.md gives them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.outputs.json_lines.lines import encode, place_of
from migrator.columnar.events import order_events
from migrator.columnar.json_values import column_text
from migrator.columnar.types import arrow_type
from migrator.model.position import Position
from migrator.model.table import Column
from migrator.ports.eventlog import TableData
from migrator.ports.output import SegmentEvents, TableEvents
from tests.contract.event_log.eventlog_content import dump_rows, images

DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("bool", True, "true"),
        ("int32", -5, "-5"),
        ("int64", 2**53 + 1, '"9007199254740993"'),
        ("decimal(38,38)", Decimal("1E-38"), '"0.' + "0" * 37 + '1"'),
        ("decimal(9,3)", Decimal("-12.300"), '"-12.300"'),
        ("float64", 0.1, "0.1"),
        ("float64", -0.0, "-0.0"),
        ("float32", 0.1, "0.10000000149011612"),
        ("float64", float("nan"), '"NaN"'),
        ("float64", float("-inf"), '"-Infinity"'),
        ("string", 'a"\n\x00é\u2028', '"a\\"\\n\\u0000é\u2028"'),
        ("binary", b"\x00\xff", '"AP8="'),
        ("date", 19_782, '"2024-02-29"'),
        ("date", -719_529, '"-0001-12-31"'),
        ("date", 2_932_897, '"+10000-01-01"'),
        ("date", 2**31 - 1, '"infinity"'),
        ("date", -(2**31), '"-infinity"'),
        ("timestamp", 19_782 * DAY_US + 1, '"2024-02-29T00:00:00.000001"'),
        ("timestamptz", 0, '"1970-01-01T00:00:00.000000Z"'),
        ("timestamptz", 2**63 - 1, '"infinity"'),
        ("timestamp", -(2**63), '"-infinity"'),
        ("string", None, "null"),
        ("date", None, "null"),
    ],
)
def test_a_value_is_written_so(kind: str, value: Any, text: str) -> None:
    column = Column("c", kind, True, kind)
    storage = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}.get(kind)
    values = pa.array([value], storage or arrow_type(column)).cast(arrow_type(column))
    assert list(column_text(column, values)) == [text]


def written(*data: TableData, committed_at_us: int = 1_700_000_000_123_456) -> list[dict[str, Any]]:
    tables = order_events([(one.schema, one.kind, one.rows) for one in data])
    tabled = tuple(TableEvents(schema, rows) for schema, rows in tables)
    segment = SegmentEvents(7, Position(9, "0/9"), committed_at_us, tabled)
    return [json.loads(line) for line in encode(segment).splitlines()]


def test_the_envelope_tells_place_time_and_table() -> None:
    earlier, last = written(images((8, 3, 1, 1, "a"), (9, 0, -1, 2, "b"), (9, 0, 1, 2, "c")))
    source = {
        "schema": "public", "table": "item", "key": ["id"], "row_schema": earlier["source"]["row_schema"],
        "segment": 7, "number": 0, "snapshot": False, "position": {"order": 8, "token": None}, "index": 3,
        "ts_ms": None,
    }  # fmt: skip
    assert earlier == {
        "op": "c", "ts_ms": 1_700_000_000_123, "before": None, "after": {"id": "1", "name": "a"}, "source": source,
    }  # fmt: skip
    assert last["op"] == "u"
    assert (last["before"]["name"], last["after"]["name"]) == ("b", "c")
    assert last["source"]["position"] == {"order": 9, "token": "0/9"}
    assert last["source"]["ts_ms"] == last["ts_ms"] == 1_700_000_000_123


def test_a_dump_row_has_no_place_in_the_log() -> None:
    (event,) = written(dump_rows((1, None)), committed_at_us=0)
    assert (event["op"], event["ts_ms"], event["before"]) == ("r", None, None)
    assert event["after"] == {"id": "1", "name": None}
    assert event["source"]["snapshot"] is True
    assert event["source"]["position"] is event["source"]["index"] is event["source"]["ts_ms"] is None


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b"null\n", b'{"source":7}\n', b"\x00\x00\n", b"\xff\n"]
)
def test_what_is_no_whole_line_of_ours_has_no_place(line: bytes) -> None:
    assert place_of(line) is None
    whole = b'{"source":{"segment":7,"number":8}}\n'
    assert place_of(whole) == (7, 8)
    assert place_of(whole[:-1]) is None
