"""Targets whose keys can be read from source rows: their before images need not go through Spark.

A row-wise mapping's before images serve one purpose: they give the keys of the target rows that existed before.
Where each source row makes exactly one target row, and the key of that row consists of unchanged columns of the
source row, the images hold these keys already.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.model.table import TableSchema
from transforms.analysis.key_origin import key_of_each_row
from transforms.analysis.plan import MappingKind, MappingPlan, call
from transforms.casts import spark_type
from transforms.frames import arrow_schema, marked_frame, spark_schema


@dataclass(frozen=True, slots=True)
class HandedKey:
    """The key of a target, as unchanged columns of its source table.

    Attributes:
        source: the one table that its mapping reads.
        columns: maps each key column of the target to the source column that it copies.
    """

    source: TableSchema
    columns: Mapping[str, str]

    def rows(self, images: pa.Table, mapped: pa.Schema) -> pa.Table:
        """The target rows of source rows, laid out as ``mapped``: keys, and NULL in all other columns."""
        types = arrow_schema(self.source)
        fields, columns = [], []
        for field in mapped:
            origin = self.columns.get(field.name)
            fields.append(field if origin is not None else field.with_nullable(True))
            columns.append(
                images[origin].cast(types.field(origin).type)
                if origin is not None
                else pa.nulls(images.num_rows, field.type)
            )
        return pa.table(columns, schema=pa.schema(fields))


def handed_key(spark: SparkSession, plan: MappingPlan) -> HandedKey | None:
    """Returns the source columns that make a target's key, or None if source rows don't hold it. Runs no job."""
    if plan.kind is not MappingKind.ROW_WISE or len(plan.schemas) != 1:
        return None
    ((name, schema),) = plan.schemas.items()
    frame, leaf = marked_frame(spark, schema, f"key of {plan.target.name} {uuid.uuid4()}")
    found = key_of_each_row(call(plan.target, {name: frame}), leaf, schema)
    types = {field.name: field.dataType for field in spark_schema(schema).fields}
    wanted = {column.name: spark_type(column.spark_type) for column in plan.columns}
    columns = {}
    for key in plan.target.key:
        # In another type the key might look different, or not fit at all.
        if key not in found or key not in wanted or types[found[key]] != wanted[key]:
            return None
        columns[key] = found[key]
    return HandedKey(schema, columns) if columns else None
