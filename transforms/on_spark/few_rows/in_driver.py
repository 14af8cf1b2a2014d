"""Runs plans of one partition in a thread of the driver's JVM, without a Spark job.

For a few rows a job costs a multiple of what its operators do: the plan is serialized, a graph of its steps is
drawn, a task is scheduled, and listeners are told. All that a plan of one partition needs of a task is its context:
settings, memory, and somebody who closes what was opened. So each run gets a context of its own, and the plan's only
partition is read here. Operators begin anew with each partition that they read: nothing is left of the run before.

A plan that has been run here can't be made a job any more: some operators keep what isn't serializable.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.core.rdd import RDD
from pyspark.sql import SparkSession

_numbers = itertools.count(1)
"""Numbers of tasks, below those of Spark's own."""


class DriverTask:
    """Runs RDDs of one partition where the driver is. Several threads may use it, each with RDDs of its own.

    Args:
        spark: the session.
        settings: of Spark SQL, that the plans see besides the session's.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]):
        jvm: Any = spark._jvm
        self._spark = jvm.org.apache.spark
        self._contexts = _only(self._spark, "TaskContext$")
        self._none = _only(jvm.scala, "None$")
        self._nothing = getattr(self._spark.TaskContextImpl, "$lessinit$greater$default$12")()
        self._properties = jvm.java.util.Properties()
        seen = {name: value for name, value in spark.conf.getAll.items() if name.startswith("spark.sql.")}
        for name, value in {**seen, **settings}.items():
            self._properties.setProperty(name, value)
        # The manager of Spark's tasks can't be asked for: its owner's methods name classes that aren't there.
        self._memory = self._spark.memory.UnifiedMemoryManager.apply(
            spark.sparkContext._jsc.sc().getConf(), 1
        )

    def collected(self, batches: Sequence[RDD[bytes]]) -> list[bytes]:
        """The pieces that these RDDs give, one RDD after the other. Raises what Spark raises."""
        number = -next(_numbers)
        memory = self._spark.memory.TaskMemoryManager(self._memory, number)
        context = self._spark.TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, self._properties, None, self._spark.executor.TaskMetrics.empty(),
            None, self._nothing,
        )  # fmt: skip
        self._contexts.setTaskContext(context)
        try:
            return [piece for one in batches for piece in _pieces(one, context)]
        finally:
            try:
                context.markTaskCompleted(self._none)  # closes what was opened
            finally:
                self._contexts.unset()
                memory.cleanUpAllAllocatedMemory()
                self._memory.releaseAllExecutionMemoryForTask(number)


def _pieces(batches: RDD[bytes], context: Any) -> list[bytes]:
    rdd = batches._jrdd.rdd()
    rows = rdd.iterator(rdd.partitions()[0], context)
    found = []
    while rows.hasNext():
        found.append(bytes(rows.next()))
    return found


def _only(package: Any, name: str) -> Any:
    """An object of Scala's."""
    return getattr(getattr(package, name), "MODULE$")
