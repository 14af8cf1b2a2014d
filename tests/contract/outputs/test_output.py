"""Both outputs keep the contract. The decoders here share nothing with the encoders."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from migrator.adapters.outputs.json_lines.output import JsonLinesFile
from migrator.adapters.outputs.parquet_events.output import ParquetFolder
from migrator.model.table import Column, TableSchema
from migrator.ports.output import EventOutput
from tests.contract.event_log.eventlog_content import ITEM, WIDER
from tests.contract.outputs.output_content import WIDE, Event, Image, double, image
from tests.contract.outputs.output_contract import OutputContract, OutputUnderTest

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


class JsonLines:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "events.jsonl"
        self._start = 0

    def output(self) -> EventOutput:
        self._start = self._path.stat().st_size if self._path.exists() else 0
        return JsonLinesFile(self._path)

    def events(self) -> list[Event]:
        raw = self._path.read_bytes() if self._path.exists() else b""
        return [self._event(line) for line in raw.split(b"\n")[: raw.count(b"\n")]]

    def _event(self, line: bytes) -> Event:
        event = json.loads(line)
        source = event["source"]
        schema = SCHEMAS[source["row_schema"]]
        assert (source["schema"], source["table"]) == (schema.id.schema, schema.id.name)
        assert source["snapshot"] == (event["op"] == "r")
        before, after = (self._image(schema, event[name]) for name in ("before", "after"))
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

    def _image(self, schema: TableSchema, found: Any) -> Image:
        return found and {column.name: decoded(column, found[column.name]) for column in schema.columns}

    def size(self) -> int:
        return self._path.stat().st_size - self._start

    def tear(self, cut: int) -> None:
        os.truncate(self._path, self._path.stat().st_size - cut)


class Parquet:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "events"
        self._known: set[str] = set()

    def output(self) -> EventOutput:
        self._known = set(os.listdir(self._path)) if self._path.exists() else set()
        return ParquetFolder(self._path)

    def events(self) -> list[Event]:
        found: list[Event] = []
        for file in self._path.glob("[0-9]*/*.parquet"):
            found += self._events(pq.ParquetFile(file).read())
        return sorted(found, key=lambda event: (event.segment, event.number))

    def _events(self, rows: Any) -> list[Event]:
        schema = SCHEMAS[rows["row_schema"][0].as_py()]
        assert set(rows["table"].to_pylist()) == {schema.id.name}
        return [
            Event(
                row["segment"].as_py(),
                row["number"].as_py(),
                row["op"].as_py(),
                row["table"].as_py(),
                image(schema, row["before"]),
                image(schema, row["after"]),
                row["position_order"].as_py(),
                row["index"].as_py(),
            )
            for row in rows.to_struct_array().combine_chunks()
        ]

    def size(self) -> int:
        return sum(path.stat().st_size for path in self._newest().iterdir())

    def tear(self, cut: int) -> None:
        """Killed before its folder got its name: what is in it may be cut anywhere."""
        if not cut:
            return
        newest = self._newest()
        torn = newest.rename(newest.with_name(f".{newest.name}.tmp"))
        for path in sorted(torn.iterdir(), reverse=True):
            size = path.stat().st_size
            os.truncate(path, max(0, size - cut))
            cut = max(0, cut - size)

    def _newest(self) -> Path:
        return max(self._path.glob("[0-9]*"))


class TestJsonLines(OutputContract):
    def make(self, directory: Path) -> OutputUnderTest:
        return JsonLines(directory)


class TestParquet(OutputContract):
    def make(self, directory: Path) -> OutputUnderTest:
        return Parquet(directory)
