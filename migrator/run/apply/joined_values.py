"""Hashes of the values that joined mappings compute from single rows, for the mirror
(``transforms.analysis.grain_values``).

A batch's rows get theirs before the target transaction begins, so that no lock waits for it. When a target is
filled, those of all rows are computed again: the mapping may be another one than the mirror was filled with.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from migrator.columnar.versions import with_nulls
from migrator.errors import CORRECTED_MAPPING, MappingError
from migrator.model.table import TableId, TableSchema
from migrator.ports.mirror import MirrorRows
from transforms.analysis.grain_values import ValueColumn, hashed, value_columns, with_hashes
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause

_BATCHES = 16
"""Files of so many batches are kept: more than ever wait to be applied."""


class JoinedValues:
    """The computed values of a migration.

    Args:
        spark: the session.
        plans: checked mappings with a grain.
        folder: for rows on their way.
    """

    def __init__(self, spark: SparkSession, plans: Sequence[MappingPlan], folder: Path):
        self._spark = spark
        self._folder = folder
        self._folders = itertools.cycle(range(_BATCHES))
        self._values: dict[TableId, tuple[TableSchema, list[ValueColumn]]] = {}
        for plan in plans:
            for name, schema in plan.schemas.items():
                found = value_columns(plan.target, name)
                if found:
                    self._values.setdefault(schema.id, (schema, []))[1].extend(found)

    def added(self, batch: Sequence[MirrorRows]) -> tuple[MirrorRows, ...]:
        """A batch's rows with their hashes. Raises ``MappingError`` when a function fails on them."""
        # The batches before may still wait to be applied, or be applied again after a deadlock.
        folder = self._folder / str(next(self._folders))
        shutil.rmtree(folder, ignore_errors=True)
        return tuple(self._added(rows, folder) for rows in batch)

    def _added(self, rows: MirrorRows, folder: Path) -> MirrorRows:
        if rows.schema.id not in self._values:
            return rows
        after = rows.after
        if after is not None and after.num_rows:
            after = self._with(rows.schema.id, after)
        chunks = []
        for path in rows.chunks:
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / f"{len(list(folder.iterdir()))}.parquet"
            pq.write_table(self._with(rows.schema.id, pq.read_table(path)), place)
            chunks.append(str(place))
        return replace(rows, chunks=tuple(chunks), after=after)

    def _with(self, table: TableId, rows: pa.Table) -> pa.Table:
        schema, values = self._values[table]
        missing = [column for column in schema.columns if column.name not in rows.column_names]
        try:
            return with_hashes(self._spark, schema, values, with_nulls(rows, missing))
        except MappingError:
            raise
        except Exception as error:
            raise MappingError(
                f"a computed value of {table} fails",
                where=values[0].target.where(),
                cause=spark_cause(error),
                remedy="correct values= in the mapping, or the rows in the source; then start again"
                f"{CORRECTED_MAPPING}",
            ) from error

    def computed(self, plan: MappingPlan) -> bool:
        """Tells whether a target has computed values."""
        return any(value_columns(plan.target, name) for name in plan.schemas)

    def whole(
        self, plan: MappingPlan, frames: Mapping[str, DataFrame]
    ) -> Iterator[tuple[TableSchema, tuple[str, ...], DataFrame]]:
        """Per table of a target that has values: their columns, and all rows' keys and hashes."""
        for name, schema in plan.schemas.items():
            values = value_columns(plan.target, name)
            if values:
                columns = tuple(value.column for value in values)
                yield schema, columns, hashed(frames[name], values, *schema.key)
