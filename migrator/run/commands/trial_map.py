"""Maps rows at hand by one target's mapping, on Spark: what ``migrator try`` and the proof of a grain share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from migrator.model.reach import Reach
from migrator.run.commands.trial_rows import TrialRows, tuples
from transforms.analysis.grain_numbers import NUMBER, numbered
from transforms.analysis.plan import MappingPlan
from transforms.declared_grain import grain_tables
from transforms.on_spark.pipeline import arrow_frame, map_rows

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class TrialMap:
    """The mapping of one target.

    Args:
        spark: the session.
        plan: the checked mapping.
        source: rows of its tables.
    """

    spark: SparkSession
    plan: MappingPlan
    source: TrialRows

    def frames(self, tables: Tables) -> dict[str, DataFrame]:
        """Rows as the mapping's function gets them."""
        return {
            name: arrow_frame(self.spark, self.source.without_values(name, rows), self.plan.schemas[name])
            for name, rows in tables.items()
        }

    def mapped(self, tables: Tables) -> pa.Table:
        """The target rows of these rows."""
        return map_rows(self.spark, self.plan, self.frames(tables)).toArrow()

    def numbered(self, reach: Reach, rows: pa.Table) -> pa.Table:
        """Rows of a computed grain's table with the number of its values."""
        key = list(reach.root.schema.key)
        whole = {name: self.source.whole(name) for name in grain_tables(self.plan.target)}
        numbers = numbered(self.plan.target, reach, self.frames(whole)).toArrow()
        known = dict(zip(tuples(numbers, key), numbers[NUMBER].to_pylist(), strict=True))
        return rows.append_column(NUMBER, pa.array([known.get(one) for one in tuples(rows, key)], pa.int64()))


def united(found: pa.Table | None, rows: pa.Table, key: list[str]) -> pa.Table:
    """Rows of both, each once: a table may be reached in several parts."""
    if found is None:
        return rows
    return pa.concat_tables([found, without(rows, found, key)]).combine_chunks()


def without(rows: pa.Table, others: pa.Table, key: list[str]) -> pa.Table:
    """The rows whose key no other row has."""
    known = set(tuples(others, key))
    return rows.filter(pa.array([one not in known for one in tuples(rows, key)], pa.bool_()))
