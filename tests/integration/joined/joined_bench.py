"""The shop's mapping over batches that are made from its old tables directly: no capture, no event log.

Old tables are read whole after every transaction; what differs is the batch. The oracle is plain SQL over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.columnar.types import arrow_schema
from migrator.config import project as configuration
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from migrator.ports.eventlog import Batch, NetDelta
from migrator.run.apply.joined_job import JoinedJob
from migrator.run.apply.transform_job import TransformJob
from migrator.run.migration import Migration, plans
from migrator.run.parts import Parts
from migrator.wiring import parts as wiring
from tests.integration.run_project import Project
from transforms.registry import Mapping

Rows = dict[tuple[Any, ...], tuple[Any, ...]]


@dataclass
class JoinedBench:
    """A target and its mapping, fed batch by batch. ``begin`` makes it ready; ``close`` ends it."""

    project: Project
    folder: Path
    step: Callable[[str], None] = lambda name: None
    segment: int = 0
    known: dict[str, Rows] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    slice_grains: int = 20_000
    epoch: int = 0
    only: tuple[str, ...] = ()

    def begin(self, epoch: int = 1) -> JoinedBench:
        """Takes the ledger over and makes the mirror, as a run does."""
        self.parts: Parts = self._narrowed(wiring.parts(configuration.load(self.project.config)))
        self.parts.target._step = lambda name: self.step(name)  # type: ignore[attr-defined]
        self.epoch = epoch
        self.segment = self.parts.target.open(epoch).segment
        schemas, targets, found = plans(self.parts)
        self.schemas: dict[str, TableSchema] = {schema.id.name: schema for schema in schemas}
        migration = Migration(self.parts)
        self.job: TransformJob = migration._transform_job(targets, found, epoch)
        joined = self.job._joined
        assert joined is not None
        joined._step, joined._slice_grains = (lambda name: self.step(name)), self.slice_grains
        known = self.parts.target.open(epoch).checkpoint
        joined.filling = () if known is None else known.filling
        return self

    def _narrowed(self, parts: Parts) -> Parts:
        """With the mapping of those targets alone that are wanted: the others would all be planned as well."""
        mapping = Mapping()
        for target in parts.mapping:
            if not self.only or target.name in self.only:
                mapping.add(target)
        return replace(parts, mapping=mapping)

    def close(self) -> None:
        """Ends session and jobs."""
        self.parts.target.close()
        self.job.close()

    def dump(self, *tables: str, done: bool = True) -> None:
        """A batch with all rows of these tables as dump rows; what no mapping reads isn't captured."""
        chunks = []
        for name in (each for each in tables if each in self.schemas):
            self.known[name] = self._read(name)
            path = self.folder / f"{name}-{self.segment}.parquet"
            pq.write_table(self._arrow(name, list(self.known[name].values())), path)
            chunks.append((self.schemas[name], (str(path),), len(self.known[name])))
        self.done |= set(tables) & self.schemas.keys() if done else set()
        self._apply(chunks, [])

    def follow(self) -> None:
        """A batch with what changed in the tables that are dumped."""
        deltas = []
        for name in self.known:
            old, new = self.known[name], self._read(name)
            gone = [row for key, row in old.items() if new.get(key) != row]
            came = [row for key, row in new.items() if old.get(key) != row]
            if gone or came:
                deltas.append(NetDelta(self.schemas[name], self._arrow(name, gone), self._arrow(name, came)))
            self.known[name] = new
        self._apply([], deltas)

    def fill(self) -> int:
        """All pieces of the targets that are being filled; returns how many."""
        pieces = 0
        while self.fills().filling:
            self.piece()
            pieces += 1
        return pieces

    def piece(self) -> None:
        """The next piece of each target that is being filled."""
        self.parts.target.fill(self.fills().piece)

    def fills(self) -> JoinedJob:
        """The joined targets."""
        found = self.job.fills
        assert found is not None
        return found

    def apply_again(self, batch: Batch) -> None:
        """Maps and applies a batch."""
        self.parts.target.apply(self.job.map(batch, None))
        self.segment = batch.last

    def _apply(self, chunks: Sequence[Any], deltas: Sequence[NetDelta]) -> None:
        number = self.segment + 1
        dumps = tuple(
            TableDump(schema.id, rows=1, done=name in self.done) for name, schema in self.schemas.items()
        )
        checkpoint = Checkpoint(Position(number, str(number)), dumps=dumps)
        self.last = Batch(number, number, checkpoint, 0, 1, 1, 1, tuple(chunks), tuple(deltas))
        self.apply_again(self.last)

    def _read(self, name: str) -> Rows:
        schema = self.schemas[name]
        columns = ", ".join(schema.names())
        places = schema.key_indexes()
        rows = self.project.old.query(f"SELECT {columns} FROM {name}")
        return {tuple(row[place] for place in places): row for row in rows}

    def _arrow(self, name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        schema = arrow_schema(self.schemas[name])
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        return pa.table(
            [pa.array(values, one.type) for values, one in zip(columns, schema, strict=True)], schema=schema
        )
