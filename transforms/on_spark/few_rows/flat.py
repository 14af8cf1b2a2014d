"""Physical plans of a single partition: joins, aggregates and windows without a shuffle or a broadcast.

Spark divides rows among tasks before it joins or groups them. A shuffle or a broadcast costs a job of its own, makes
code anew, and remembers the rows of its first run. For the few rows of a small batch there is nothing to divide:
every leaf, union and join of the plan is coalesced to one partition, and Spark then finds each operator's needs met.
What is left is a chain that one task runs, again and again, over whatever its files hold.

The plan is interpreted, not compiled. To make and compile code for a few rows costs more than to map them, and each
of its operators would have code of its own for the JVM's compilers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession

from transforms.on_spark.planned import execution_of, planned_with

INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings for the tasks of flat plans."""
_PLANNED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark takes a join's size for the product of its sides', and shuffles what it holds to be too large for one
    # partition. Slots are small whatever their length says.
    "spark.sql.maxSinglePartitionBytes": f"{2**63 - 1}b",
    "spark.sql.sources.fileCompressionFactor": "1e-6",
    "spark.sql.defaultSizeInBytes": "1024",
}
_REMEMBERS = re.compile("Exchange|Adaptive|Reused|[Ss]ubquery|InMemory(?!FileIndex)")
"""Nodes that keep what they brought the first time."""
_SINGLE = "SinglePartition"
_PYTHON = re.compile("Python|Pandas|InArrow")


@dataclass(frozen=True, slots=True)
class Flat:
    """A plan of one partition.

    Attributes:
        batches: gives its rows as Arrow record batches whenever it is run.
        in_jvm: whether no part of it is run by Python.
    """

    batches: RDD[bytes]
    in_jvm: bool


def flattened(spark: SparkSession, frame: DataFrame) -> Flat | None:
    """Plans a frame for one partition; None where the plan can't do without a shuffle, a broadcast or a subquery.

    Args:
        spark: the session.
        frame: what is planned.
    """
    execution: Any = spark._jvm.org.apache.spark.sql.execution  # type: ignore[union-attr]
    with planned_with(spark, _PLANNED) as session:
        plan = _of_one_partition(spark, execution, execution_of(session, frame).sparkPlan())
        physical = execution.QueryExecution.prepareExecutedPlan(session, plan)
        shown = physical.toString()
        if _REMEMBERS.search(shown) is not None:
            return None
        batches = frame._jdf.toArrowBatchRdd(physical).toJavaRDD()
    lineage = batches.toDebugString()
    if batches.getNumPartitions() != 1 or "Shuffled" in lineage:
        return None
    in_jvm = _PYTHON.search(shown) is None and _PYTHON.search(lineage) is None
    return Flat(RDD(batches, spark.sparkContext, NoOpSerializer()), in_jvm)


def _of_one_partition(spark: SparkSession, execution: Any, node: Any) -> Any:
    """The plan with each leaf and each node of several inputs coalesced, where Spark doesn't see one partition."""
    children = node.children()
    count = children.size()
    if count:
        flat = [_of_one_partition(spark, execution, children.apply(number)) for number in range(count)]
        node = node.withNewChildren(spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq(flat))  # type: ignore[union-attr]
    if count == 1 or node.outputPartitioning().toString() == _SINGLE:
        return node
    return execution.CoalesceExec(1, node)
