"""Both outputs keep the contract. The decoders here share nothing with the encoders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from migrator.adapters.outputs.json_lines.output import JsonLinesFile
from migrator.adapters.outputs.parquet_events.output import ParquetFolder
from migrator.ports.output import EventOutput
from tests.contract.outputs.json_events import SCHEMAS, json_event
from tests.contract.outputs.output_content import Event, image
from tests.contract.outputs.output_contract import OutputContract, OutputUnderTest


class JsonLines:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "events.jsonl"
        self._start = 0

    def output(self) -> EventOutput:
        self._start = self._path.stat().st_size if self._path.exists() else 0
        return JsonLinesFile(self._path)

    def events(self) -> list[Event]:
        raw = self._path.read_bytes() if self._path.exists() else b""
        return [json_event(line) for line in raw.split(b"\n")[: raw.count(b"\n")]]

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
