"""A joined mapping of few rows, planned once: a flat plan over rows that are handed to it in memory."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from transforms.analysis.plan import MappingPlan
from transforms.on_spark.few_rows.flat import flattened
from transforms.on_spark.few_rows.handed import HandedRows
from transforms.on_spark.pipeline import map_delta


class FewRows:
    """One target's mapping of before and after images.

    Args:
        spark: the session.
        plan: the checked mapping.
        number: the mapping's number; ``SIDE`` holds it, see ``map_delta``.

    ``schema``: of what ``batches`` gives. ``flat``: the plan; None where there is none of one partition.
    """

    def __init__(self, spark: SparkSession, plan: MappingPlan, number: int):
        before, after = (
            {name: HandedRows(spark, plan.schemas[name]) for name in plan.reads} for _ in range(2)
        )
        self._sides = before, after
        gone, there = ({name: rows.frame for name, rows in side.items()} for side in self._sides)
        frame = map_delta(spark, plan, gone, there, number)
        self.schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")
        self.flat = flattened(spark, frame)

    def put(self, before: Mapping[str, pa.Table], after: Mapping[str, pa.Table]) -> None:
        """Hands the rows of a batch over, by source table. The run before must be over."""
        for side, rows in zip(self._sides, (before, after), strict=True):
            for name, handed in side.items():
                handed.put(rows.get(name))
