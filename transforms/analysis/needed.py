"""The source columns that a mapping needs: what it reads, and by what it finds the rows that belong together.

What becomes of any other column of the source (dropped, renamed, retyped) makes no row of the target another one, so
capture goes on over it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from migrator.model.reach import Reach
from migrator.model.table import TableId, TableSchema
from transforms.analysis.grain_numbers import numbered
from transforms.analysis.grain_values import hashed, value_columns
from transforms.analysis.plan import MappingPlan
from transforms.analysis.row_wise import columns_read
from transforms.declared_grain import grain_tables
from transforms.frames import marked_frame

_Found = Iterator[tuple[TableId, Iterable[str]]]


def with_needed(
    spark: Callable[[], SparkSession], schemas: Sequence[TableSchema], plans: Iterable[MappingPlan]
) -> list[TableSchema]:
    """Returns the schemas, each of which knows what these plans need of it. Runs no job.

    ``spark``: is called for plans with a computed value or grain.
    """
    found: dict[TableId, set[str]] = {schema.id: set() for schema in schemas}
    for plan in plans:
        for table, columns in _of_plan(spark, plan):
            found[table].update(columns)
    return [
        replace(schema, needed=frozenset(found[schema.id].intersection(schema.names()))) for schema in schemas
    ]


def _of_plan(spark: Callable[[], SparkSession], plan: MappingPlan) -> _Found:
    for name, columns in plan.reads.items():
        yield plan.schemas[name].id, columns
    for reach in plan.reaches:
        yield from _of_links(reach)
        if reach.name:
            yield from _of_computed_grain(spark(), plan, reach)
    for name, schema in plan.schemas.items():
        if values := value_columns(plan.target, name):
            frames, leaves = _marked(spark(), {name: schema})
            yield from _read(hashed(frames[name], values), leaves, plan.schemas)


def _of_links(reach: Reach) -> _Found:
    yield reach.root.schema.id, reach.grain
    for node in reach.nodes:
        yield node.schema.id, node.columns
        if node.above is not None:
            yield reach.nodes[node.above].schema.id, node.above_columns


def _of_computed_grain(spark: SparkSession, plan: MappingPlan, reach: Reach) -> _Found:
    frames, leaves = _marked(spark, {name: plan.schemas[name] for name in grain_tables(plan.target)})
    yield from _read(numbered(plan.target, reach, frames), leaves, plan.schemas)


def _marked(
    spark: SparkSession, schemas: Mapping[str, TableSchema]
) -> tuple[dict[str, DataFrame], dict[int, str]]:
    frames, leaves = {}, {}
    for name, schema in schemas.items():
        frames[name], leaf = marked_frame(spark, schema, f"needed of {name} {uuid.uuid4()}")
        leaves[leaf] = name
    return frames, leaves


def _read(result: DataFrame, leaves: dict[int, str], schemas: Mapping[str, TableSchema]) -> _Found:
    for name, places in columns_read(result._jdf.queryExecution().optimizedPlan(), leaves).items():
        yield schemas[name].id, [schemas[name].columns[place].name for place in places]
