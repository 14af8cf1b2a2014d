"""Dump rows that Spark's executors put beside the target, in parallel: unlogged tables in the tool's own schema.

A task writes a table of its own, under a name that no other attempt can have, and says its name to the driver. Only
tables that the driver was told of are merged, so the tables of retried, speculative or orphaned tasks are
nothing but leftovers. A leftover is recognised by its name: migration, epoch and last segment of the batch
stand in it.

Unlogged means that the server empties the table when it recovers from a crash. So the merge counts the rows first,
and asks for them again when they are not all there.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import pyarrow as pa

from migrator.adapters.targets.postgres.refusal import (
    LOCK_NOT_AVAILABLE,
    NO_SCHEMA_OR_TABLE,
    UNIQUE_VIOLATION,
    Refusal,
)
from migrator.adapters.targets.postgres.rows.merge import Merge, quoted
from migrator.adapters.targets.postgres.rows.prepared import encoded_column
from migrator.adapters.targets.postgres.rows.writer import DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.rows import check_columns
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.target import StagedRows, TargetBatch

SCHEMA = "migrator"
_INSERT = quoted("migrator_insert")
_LEFTOVERS = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'migrator' AND c.relkind = 'r' AND c.relname LIKE $1::text"
)


class Unusable(Exception):
    """Staged rows can't be merged as they are: the batch is to be written from rows brought to the driver."""


@dataclass(frozen=True, slots=True)
class ExecutorStaging:
    """The callable that takes a task's mapped rows. Travels to executors in the pickled job, the password with it.

    Attributes:
        settings: the target.
        structure: the target table.
        epoch: of the leader whose batch it is.
        segment: last segment of the batch.
    """

    settings: PostgresTarget
    structure: Structure
    epoch: int
    segment: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> str | None:
        """Stages all rows of one task attempt and returns a receipt; None when there are none.

        Raises ``TargetError``, ``ConnectionFailed``, ``Refusal``, ``ConnectionLost``.
        """
        found = list(batches)
        rows = pa.Table.from_batches(found) if found else None
        if rows is None or not rows.num_rows:
            return None
        names = tuple(rows.column_names)
        check_columns(self.structure.table, names)
        encoded = [encoded_column(self.structure, rows, name) for name in names]
        columns = [f"c{place}" for place in range(len(names))]
        name = staging_name(self.settings.migration, self.epoch, self.segment)
        body = ", ".join(f"{c} {one.staging_type}" for c, one in zip(columns, encoded, strict=True))
        session = Session(self.settings)
        try:
            session.run(f"CREATE UNLOGGED TABLE {quoted(SCHEMA)}.{quoted(name)} ({body})")
            session.load(TableId(SCHEMA, name), pa.table([one.values for one in encoded], names=columns))
        finally:
            session.close()
        return json.dumps(
            {
                "table": name,
                "rows": rows.num_rows,
                "columns": names,
                "expressions": [one.expression for one in encoded],
                "lost": [one.lost for one in encoded],
            }
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A receipt, read."""

    table: str
    rows: int
    columns: tuple[str, ...]
    expressions: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{quoted(SCHEMA)}.{quoted(self.table)}"


def _part(receipt: str) -> _Part:
    found = json.loads(receipt)
    return _Part(
        found["table"],
        found["rows"],
        tuple(found["columns"]),
        tuple(found["expressions"]),
        tuple(found["lost"]),
    )


def staging_name(migration: str, epoch: int, segment: int) -> str:
    """A name that was never used before, for one attempt of one task."""
    return f"{staging_prefix(migration)}{epoch}_{segment}_{uuid.uuid4().hex[:16]}"


def staging_prefix(migration: str) -> str:
    """Begins the names of a migration's staging tables."""
    return f"stage_{sha256(migration.encode()).hexdigest()[:12]}_"


def stageable(structure: Structure) -> bool:
    """Tells whether a table's dump rows may be merged before everything else of a batch.

    Not where other columns than the key are unique: there a row of the log may have to make room first. Nor where
    keys that look different may be one: whether two source rows have one key takes the rest of the batch to see.
    """
    return bool(structure.table.key) and not structure.exclusive and structure.key_is_exact()


def may_stage(session: Session) -> bool:
    """Tells whether the role may make tables in our schema."""
    return bool(session.one("SELECT has_schema_privilege('migrator', 'USAGE, CREATE')")[0])


def merge_staged(
    session: Session, structure: Structure, staged: StagedRows, loads: DirectLoads, relaxed: bool
) -> None:
    """Merges staged dump rows in the open transaction.

    Raises ``Unusable`` when they are not all there or the server refuses one: the driver's way then says which.
    """
    if not relaxed and (structure.outgoing or structure.incoming):
        raise Unusable("foreign keys want the driver's order of statements")
    parts = [_part(receipt) for receipt in staged.parts]
    if len({part.columns for part in parts}) != 1:
        raise Unusable("the parts differ in their columns")
    merge = Merge(
        structure=structure,
        written=parts[0].columns,
        expressions=tuple("{0}" for _ in parts[0].columns),
        staging=f"({' UNION ALL '.join(_selected(structure, part) for part in parts)})",
    )
    try:
        counts = ", ".join(f"(SELECT count(*) FROM {part.name})" for part in parts)
        if [int(n) for n in session.one(f"SELECT {counts}")] != [part.rows for part in parts]:
            raise Unusable("the server has emptied a staging table, as it does after a crash")
        if any(session.rows(query) for part in parts for query in _lost(part)):
            raise Unusable("a column would keep less than was staged")
        if not (loads.allowed(structure.table.id) and _inserted(session, merge, loads)):
            session.run(merge.upsert(strict=False))
    except Refusal as refusal:
        if refusal.retryable() and refusal.sqlstate not in NO_SCHEMA_OR_TABLE:
            raise
        raise Unusable(refusal.cause()) from None


def _selected(structure: Structure, part: _Part) -> str:
    values = []
    for place, (name, expression) in enumerate(zip(part.columns, part.expressions, strict=True)):
        storage = structure.column(name)
        value = expression.replace("{0}", f"s.c{place}")
        values.append(f"{value if storage is None else f'CAST({value} AS {storage.cast})'} AS c{place}")
    return f"SELECT {', '.join(values)} FROM {part.name} s"


def _lost(part: _Part) -> list[str]:
    """Queries that find values of which a column would keep less. The driver's way then names the row."""
    return [
        f"SELECT 1 FROM {part.name} s WHERE s.c{place} IS NOT NULL AND {lost.replace('{0}', f's.c{place}')} LIMIT 1"
        for place, lost in enumerate(part.lost)
        if lost
    ]


def _inserted(session: Session, merge: Merge, loads: DirectLoads) -> bool:
    """Inserts all rows plainly; undoes it and returns False when some rows exist already."""
    session.run(f"SAVEPOINT {_INSERT}")
    try:
        session.run(merge.insert_all())
    except Refusal as refusal:
        session.run(f"ROLLBACK TO SAVEPOINT {_INSERT}")
        if refusal.sqlstate != UNIQUE_VIOLATION:
            raise
        loads.conflict(merge.structure.table.id)
        return False
    return True


def staged_rows(batch: TargetBatch) -> list[tuple[TableId, StagedRows]]:
    """The staged rows of a batch by target table."""
    return [(rows.table.id, rows.chunk) for rows in batch.rows if isinstance(rows.chunk, StagedRows)]


def brought_here(batch: TargetBatch) -> TargetBatch:
    """The batch with its staged rows on the driver. Raises what mapping raises."""
    rows = [
        replace(one, chunk=one.chunk.here()) if isinstance(one.chunk, StagedRows) else one
        for one in batch.rows
    ]
    return replace(batch, rows=tuple(rows))


def drop_parts(session: Session, staged: Sequence[StagedRows]) -> None:
    """Drops merged staging tables, in the transaction that merged them."""
    names = [_part(receipt).name for one in staged for receipt in one.parts]
    if names:
        session.run(f"DROP TABLE IF EXISTS {', '.join(names)}")


def drop_leftovers(session: Session, migration: str, epoch: int, segment: int) -> None:
    """Drops this migration's staging tables that nobody will merge: of earlier leaders, and of applied segments.

    A table that an orphaned task is still writing stays until the next time. To be called outside of a transaction.
    """
    prefix = staging_prefix(migration)
    name_of = re.compile(rf"{prefix}(\d+)_(\d+)_[0-9a-f]{{16}}")
    for (name,) in session.rows(_LEFTOVERS, [f"{prefix.replace('_', chr(92) + '_')}%"]):
        found = name_of.fullmatch(str(name))
        if found is None or (int(found[1]) >= epoch and int(found[2]) > segment):
            continue
        try:
            session.run(f"DROP TABLE IF EXISTS {quoted(SCHEMA)}.{quoted(str(name))}")
        except Refusal as refusal:
            if refusal.sqlstate != LOCK_NOT_AVAILABLE and not refusal.retryable():
                raise TargetError(
                    "a staging table left over from another run can't be dropped",
                    where=f"{SCHEMA}.{name}",
                    cause=refusal.cause(),
                    remedy="drop it as its owner; nothing in it is needed",
                ) from None
