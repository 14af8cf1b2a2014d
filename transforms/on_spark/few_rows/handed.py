"""Source rows that a plan finds in the JVM's memory: other ones for each run, without a file and its footer.

The leaf of such a plan is what Spark makes of rows from Arrow: an RDD over a collection of record batches. Its
collection is replaced before each run. Executors get it with their task.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from migrator.model.table import TableSchema
from transforms.frames import arrow_schema, spark_schema
from transforms.on_spark.planned import planned_with

_AS_RDD = {
    # Few rows aren't taken for constants, which plans would be made with.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # The size that plans take them to have: a leaf asks the session that it was made in.
    "spark.sql.defaultSizeInBytes": "1024",
}


class HandedRows:
    """The rows of one source table, none at first.

    Args:
        spark: the session.
        schema: the source table.

    ``frame``: what a plan is arrow over.
    """

    def __init__(self, spark: SparkSession, schema: TableSchema):
        jvm: Any = spark._jvm
        self._schema = arrow_schema(schema)
        self._nothing = self._message(self._schema.empty_table())
        self._empty = True
        gateway: Any = spark.sparkContext._gateway
        self._messages = gateway.new_array(jvm.java.lang.Object, 1)
        self._messages[0] = self._nothing
        values = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(self._messages)
        with planned_with(spark, _AS_RDD) as session:
            taken = jvm.PythonSQLUtils.toDataFrame(values.iterator(), spark_schema(schema).json(), session)
        plan = taken.queryExecution().analyzed()
        self.frame = DataFrame(
            jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark
        )
        rows = plan.rdd()
        while rows.dependencies().nonEmpty():
            rows = rows.dependencies().head().rdd()
        (partition,) = rows.partitions()
        getattr(partition, "values_$eq")(values)

    def put(self, rows: pa.Table | None) -> None:
        """Replaces the rows; they have at least the columns of the schema. No run may be under way."""
        if rows is None or not rows.num_rows:
            if not self._empty:
                self._messages[0] = self._nothing
            self._empty = True
            return
        self._messages[0] = self._message(rows)
        self._empty = False

    def _message(self, rows: pa.Table) -> bytes:
        whole = rows.select(self._schema.names).cast(self._schema).combine_chunks()
        batches = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema=self._schema)]
        (batch,) = batches
        return bytes(batch.serialize().to_pybytes())
