"""Tries a reverse mapping on rows of the old database: mapped there and back, is a row what it was?

Small tables are tried whole; of large ones some rows, with all rows that they are linked to. Everything runs
through the functions themselves, on rows that the chunk reader hands: neither database is written to, and of the new
one only the structure is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from migrator.errors import SourceError
from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader
from migrator.run.commands.round_trip_rows import OldRows, Unlinked
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.frames import arrow_frame, arrow_schema
from transforms.on_spark.pipeline import map_rows
from transforms.on_spark.session import named_jvm_end
from transforms.reverse.as_read import as_read
from transforms.reverse.compare import Compared, compared, same_types

ROWS = 10_000
"""Rows of a table that are tried, unless somebody says otherwise."""


@dataclass(frozen=True, slots=True)
class Trip:
    """The outcome for one old table.

    Attributes:
        table: its name.
        compared: what came back; None where nothing could be compared.
        whole: whether all of its rows were tried.
        untried: why nothing was compared; empty if something was.
        failed: why one of the functions can't map the rows; empty if they can.
    """

    table: str
    compared: Compared | None = None
    whole: bool = False
    untried: str = ""
    failed: str = ""

    def is_exact(self) -> bool:
        """Tells whether every row came back as it was, once, and no other."""
        found = self.compared
        if found is None:
            return False
        differs = any(cells.changed for cells in found.columns.values())
        return not (differs or found.missing or found.extra or found.twice)


class RoundTrip:
    """Maps old rows there and back.

    Args:
        spark: the session.
        reader: of the old database, for all tables of ``plans``.
        plans: the forward mapping's, by new table.
        back: the reverse mapping's, by old table.
        references: foreign keys between old tables.
        rows: of each table at most so many are tried.
    """

    def __init__(
        self,
        spark: SparkSession,
        reader: ChunkReader,
        plans: Mapping[str, MappingPlan],
        back: Mapping[str, MappingPlan],
        references: Sequence[Reference],
        rows: int = ROWS,
    ):
        self._spark, self._plans, self._back = spark, plans, back
        self._old = OldRows(spark, reader, plans, references, rows)
        self._numbers: dict[str, dict[str, int]] = {}

    def tried(self, table: str) -> Trip:
        """Tries one table. What doesn't come back is looked at again: a row may have changed between two reads."""
        found = self._once(table)
        if found.compared is None or found.is_exact():
            return found
        self._old.forget()
        again = self._once(table)
        return again if again.is_exact() else found

    def _once(self, table: str) -> Trip:
        plan = self._back[table]
        schema = self._old.schema(table)
        if schema is None:
            return Trip(table, untried="the mapping reads nothing of it")
        try:
            sample, whole = self._old.sample(table)
            if not sample.num_rows:
                return Trip(table, whole=True, untried="it has no rows")
            new, known = self._there(plan, table, sample, whole)
        except Unlinked as reason:
            return Trip(table, untried=str(reason))
        except SourceError as error:
            if error.retryable:
                raise
            return Trip(table, untried=f"{error.what}: {error.cause}")
        except (PySparkException, Py4JError) as error:
            return Trip(table, failed=f"the mapping fails on its rows: {spark_cause(error)}")
        try:
            with named_jvm_end():
                rows = map_rows(self._spark, plan, new)
                back = same_types(as_read(rows, schema).toArrow(), arrow_schema(schema))
        except (PySparkException, Py4JError) as error:
            return Trip(table, failed=f"its reverse function fails on mapped rows: {spark_cause(error)}")
        filled = [column.name for column in plan.columns if column.name in schema.names()]
        return Trip(table, compared(sample, back, schema.key, filled, known), whole)

    def _there(
        self, back: MappingPlan, table: str, sample: pa.Table, whole: bool
    ) -> tuple[dict[str, DataFrame], pa.Table | None]:
        """Returns the new tables' rows as they are read there, and further rows of the old table that made them."""
        frames: dict[str, DataFrame] = {}
        known: pa.Table | None = None
        for name, schema in back.schemas.items():
            if name not in self._plans:
                continue  # nothing fills it: it has no rows
            with named_jvm_end():
                mapped, others = self._old.mapped(self._plans[name], table, sample, whole)
            frames[name] = self._as_read(self._plans[name], mapped, schema)
            known = others if known is None or others is None else pa.concat_tables([known, others])
        return frames, known

    def _as_read(self, plan: MappingPlan, mapped: pa.Table, schema: TableSchema) -> DataFrame:
        for column, key_map in plan.target.surrogates:
            if column in mapped.column_names:
                mapped = self._numbered(mapped, column, key_map)
        frame = as_read(self._spark.createDataFrame(mapped), schema) if mapped.num_rows else None
        rows = arrow_schema(schema).empty_table() if frame is None else frame.toArrow()
        return arrow_frame(self._spark, rows, schema)

    def _numbered(self, mapped: pa.Table, column: str, key_map: str) -> pa.Table:
        """Old keys become numbers, the same ones in every table, as a key map does it."""
        known = self._numbers.setdefault(key_map, {})
        numbers = [
            None if key is None else known.setdefault(str(key), len(known) + 1)
            for key in mapped[column].to_pylist()
        ]
        return mapped.set_column(mapped.column_names.index(column), column, pa.array(numbers, pa.int64()))
