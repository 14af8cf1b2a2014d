"""Lines of JSON as events, by the rules of docs/reference/events.md; it shares nothing with the encoder."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from migrator.model.table import Column, TableSchema
from tests.contract.event_log.eventlog_content import ITEM, WIDER
from tests.contract.outputs.output_content import WIDE, Event, Image, double

SCHEMAS = {schema.version(): schema for schema in (ITEM, WIDER, WIDE)}
INFINITE = {
    "date": {"infinity": 2**31 - 1, "-infinity": -(2**31)},
    "timestamp": {"infinity": 2**63 - 1, "-infinity": -(2**63)},
    "timestamptz": {"infinity": 2**63 - 1, "-infinity": -(2**63)},
}


def decoded(column: Column, value: Any) -> Any:
    """A JSON value in plain form, by the rules of docs/reference/events.md."""
    if value is None:
        return None
    if column.type in INFINITE:
        return INFINITE[column.type].get(value) if "infinity" in value else _moment(column.type, value)
    if column.type.startswith("float"):
        return double(float(value))
    if column.type == "int64":
        assert isinstance(value, str)
        return int(value)
    return base64.b64decode(value, validate=True) if column.type == "binary" else value


def _moment(kind: str, text: str) -> int:
    if kind == "timestamptz":
        assert text.endswith("Z")
    said = text.removesuffix("Z").removeprefix("+")
    moment = np.datetime64(said, "D") if kind == "date" else np.datetime64(said, "us")
    return int(moment.astype(np.int64))


def json_event(line: bytes) -> Event:
    event = json.loads(line)
    source = event["source"]
    schema = SCHEMAS[source["row_schema"]]
    assert (source["schema"], source["table"]) == (schema.id.schema, schema.id.name)
    assert source["snapshot"] == (event["op"] == "r")
    before, after = (_image(schema, event[name]) for name in ("before", "after"))
    order = source["position"] and source["position"]["order"]
    return Event(
        source["segment"],
        source["number"],
        event["op"],
        source["table"],
        before,
        after,
        order,
        source["index"],
    )


def _image(schema: TableSchema, found: Any) -> Image:
    return found and {column.name: decoded(column, found[column.name]) for column in schema.columns}
