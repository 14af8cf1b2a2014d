"""Tables of the simulated migration: four old ones, three new ones, and the row-wise mapping between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from migrator.adapters.memory.eventlog import MemoryEventLog
from migrator.model.event import Row
from migrator.model.progress import Checkpoint, Mapped, TableIdentity
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from migrator.ports.eventlog import Batch
from migrator.ports.target import TargetBatch, TargetRows
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.registry import TargetMapping
from verify.history.history import TrackedTable


def _schema(name: str) -> TableSchema:
    columns = (
        Column("id", "int64", False, "bigint"),
        Column("stamp", "string", False, "text"),  # provenance: session and number
        Column("value", "int64", False, "bigint"),
    )
    return TableSchema(TableId("old", name), columns, ("id",))


REGISTER, CHECKING, SAVINGS, COUNTER = (
    _schema(name) for name in ("register", "checking", "savings", "counter")
)
SCHEMAS = {schema.id: schema for schema in (REGISTER, CHECKING, SAVINGS, COUNTER)}
TRACKED = (
    TrackedTable("register"),
    TrackedTable("checking", total="bank"),
    TrackedTable("savings", total="bank"),
    TrackedTable("counter", fold=True),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A row without its key: who wrote it (session, number) and its value."""

    session: int
    number: int
    value: int

    def text(self, key: int) -> Row:
        """The row as the source prints it."""
        return (str(key), f"{self.session}.{self.number}", str(self.value))


def parse_stamp(stamp: str) -> tuple[int, int]:
    """Session and number of a row."""
    session, _, number = stamp.partition(".")
    return int(session), int(number)


def _target(name: str, key: tuple[str, ...], *columns: str) -> TargetTable:
    types = {"id": ("bigint", "int8"), "value": ("bigint", "int8")}
    described = tuple(
        TargetColumn(column, *types.get(column, ("string", "text")), False, False, False)
        for column in columns
    )
    return TargetTable(TableId("new", name), described, key)


@dataclass(frozen=True, slots=True)
class Plan:
    """A target table: all rows of ``sources``, with the source's name in ``kind`` if there are several.

    ``made`` says by which of the mapping's versions a row was made; nothing else differs from one to the other.
    """

    target: TargetTable
    sources: tuple[str, ...]

    def rows(self, source: str, rows: pa.Table, version: str) -> pa.Table:
        """The mapping itself, row by row."""
        rows = rows.append_column("made", pa.array([version] * rows.num_rows, pa.string()))
        if len(self.sources) == 1:
            return rows
        return rows.append_column("kind", pa.array([source] * rows.num_rows, pa.string()))


PLANS = (
    Plan(_target("register", ("id",), "id", "stamp", "value", "made"), ("register",)),
    Plan(_target("account", ("kind", "id"), "id", "stamp", "value", "made", "kind"), ("checking", "savings")),
    Plan(_target("counter", ("id",), "id", "stamp", "value", "made"), ("counter",)),
)
TARGETS = tuple(plan.target for plan in PLANS)


Versions = Mapping[str, str]
"""The version of each target's mapping; a target that the mapping lacks is absent."""
AS_ALWAYS: Versions = {table.id.name: "1" for table in TARGETS}


def analysed(versions: Versions) -> dict[str, MappingPlan]:
    """The plans of these targets, as far as what is carried over depends on them."""
    return {
        name: MappingPlan(
            TargetMapping(name, plan.target.key, None, lambda frame: frame, plan.sources),
            MappingKind.ROW_WISE,
            plan.target.columns,
            {schema.id.name: schema for schema in SCHEMAS.values() if schema.id.name in plan.sources},
            {},
        )
        for plan in PLANS
        if (name := plan.target.id.name) in versions
    }


def noted(versions: Versions, identities: Mapping[str, TableIdentity]) -> tuple[Mapped, ...]:
    """Returns the versions as the ledger records them, and which table each target is."""
    return tuple(
        Mapped(name, "new", version, identity=identities.get(name)) for name, version in versions.items()
    )


class Mapper:
    """The simulation's counterpart of ``TransformJob`` on Spark: it makes the target rows of a batch.

    Args:
        log: where the batches' chunk rows are.
        versions: of each target that the mapping has.
    """

    def __init__(self, log: MemoryEventLog, versions: Versions):
        self._log = log
        self._versions = versions

    def map(self, batch: Batch, known: Checkpoint | None) -> TargetBatch:
        """See ``migrator.run.apply.transform_job.TransformJob.map``."""
        plans = [plan for plan in PLANS if plan.target.id.name in self._versions]
        found = [self._rows(plan, batch, known) for plan in plans]
        rows = tuple(rows for rows in found if rows is not None)
        return TargetBatch(batch.last, batch.checkpoint, rows, link=batch.link)

    def _rows(self, plan: Plan, batch: Batch, known: Checkpoint | None) -> TargetRows | None:
        version = self._versions[plan.target.id.name]
        chunks = [
            plan.rows(schema.id.name, self._log.chunk(path), version)
            for schema, paths, _ in batch.chunks
            if schema.id.name in plan.sources
            for path in paths
        ]
        deltas = [delta for delta in batch.deltas if delta.schema.id.name in plan.sources]
        before = [plan.rows(delta.schema.id.name, delta.before, version) for delta in deltas]
        after = [plan.rows(delta.schema.id.name, delta.after, version) for delta in deltas]
        emptied = {table.name for table in batch.emptied()} >= set(plan.sources)
        if not emptied and not any(part.num_rows for part in (*chunks, *before, *after)):
            return None
        strict = not chunks and known is not None and _dumped(known, plan.sources)
        return TargetRows(
            plan.target, _together(chunks), _together(before), _together(after), strict, emptied=emptied
        )


def _together(parts: Sequence[pa.Table]) -> pa.Table | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return pa.concat_tables(parts)


def _dumped(known: Checkpoint, sources: Sequence[str]) -> bool:
    return set(sources) <= {dump.table.name for dump in known.dumps if dump.done}
