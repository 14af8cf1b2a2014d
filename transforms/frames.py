"""Rows become DataFrames: from Arrow held in memory, from Parquet files, or none at all.

Values survive exactly. In particular the extremes of int32 days and int64 microseconds (PostgreSQL's
infinities) and dates before 1582 pass as the raw numbers they are: Spark and Arrow both count in the
proleptic Gregorian calendar.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from migrator.errors import MappingError
from migrator.model.table import Column, TableSchema

_SPARK: dict[str, T.DataType] = {
    "bool": T.BooleanType(),
    "int8": T.ByteType(),
    "int16": T.ShortType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "float32": T.FloatType(),
    "float64": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamptz": T.TimestampType(),
}
_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_ANY_NUMBER = 1 << 20
"""More parts than a frame in memory has."""


def spark_schema(schema: TableSchema) -> T.StructType:
    """The Spark type of a source table's rows, column by column.

    Every column is nullable whatever the source says: Spark drops NULL checks it holds to be needless, so a
    NULL that should not exist would turn into a wrong value instead of an error.
    """
    return T.StructType(
        [T.StructField(column.name, _spark_type(column, schema)) for column in schema.columns]
    )


def empty_frame(spark: SparkSession, schema: TableSchema) -> DataFrame:
    """A source table without rows."""
    return arrow_frame(spark, arrow_schema(schema).empty_table(), schema)


def marked_frame(spark: SparkSession, schema: TableSchema, marker: str) -> tuple[DataFrame, int]:
    """An empty frame and the id of its RDD, by which its leaf can be told from every constant.

    Attribute ids would not do (a self-join renumbers them), nor would column metadata (a constant built with
    ``schema=orders.schema`` inherits it). One partition, so that reading it is a job and can be noticed.
    """
    # Made in the JVM: an RDD of Python's would be pickled, piped and unpickled on its way, which takes twice
    # as long. And of rows as Spark keeps them: to plan how a user's rows become those takes longer than all
    # the rest.
    context, session = spark.sparkContext, spark._jsparkSession
    gateway = context._gateway
    assert gateway is not None
    nothing = JavaClass("java.util.ArrayList", gateway._gateway_client)()
    rows = context._jsc.parallelize(nothing, 1).setName(marker).rdd()
    frame = session.internalCreateDataFrame(rows, session.parseDataType(spark_schema(schema).json()), False)
    return DataFrame(frame, spark), frame.queryExecution().analyzed().rdd().id()


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: TableSchema) -> DataFrame:
    """A DataFrame of rows held in memory (small path).

    Args:
        spark: a running session.
        rows: Arrow columns found by name; columns beyond the schema are dropped.
        schema: the source table's schema.

    Raises:
        MappingError: a column is missing, or of a type that doesn't hold exactly the schema's values.
    """
    wanted = arrow_schema(schema)
    missing = [name for name in wanted.names if name not in rows.column_names]
    if missing:
        raise MappingError(
            "rows lack columns of their table",
            where=str(schema.id),
            cause=f"missing {', '.join(missing)}",
            remedy="this is a fault of the tool: report it",
        )
    return spark.createDataFrame(
        without_empty_pieces(rows.select(wanted.names).cast(wanted)), spark_schema(schema)
    )


def computed_late(frame: DataFrame) -> DataFrame:
    """The same rows, of which Spark computes nothing until it knows what is asked for.

    Rows in memory it maps as a whole while it plans: a column that fails would fail whoever wants another one.
    """
    return frame.coalesce(
        _ANY_NUMBER
    )  # no rule maps through it, and so many parts leave those that there are


def without_empty_pieces(rows: pa.Table) -> pa.Table:
    """The same rows without empty pieces: Spark takes one for the end, and drops what is behind it without a
    word."""
    return pa.Table.from_batches([batch for batch in rows.to_batches() if batch.num_rows], rows.schema)


def parquet_frame(spark: SparkSession, paths: Sequence[Path], schema: TableSchema) -> DataFrame:
    """A DataFrame over Parquet files that all hold that schema (large path). No paths means no rows."""
    if not paths:
        return empty_frame(spark, schema)
    reader = spark.read.schema(spark_schema(schema)).option("__globPaths__", "false")  # names may hold [ or {
    return reader.parquet(*map(file_uri, paths))


def file_uri(path: Path) -> str:
    """A local path as Spark takes it, also where its default filesystem is another one (HDFS on YARN, say)."""
    return f"file://{path.absolute()}"  # not Path.as_uri(): Spark takes percent signs for what they are


def constants(spark: SparkSession, schema: str, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """A small constant table to join in a mapping, e.g. ``constants(orders.sparkSession, "code string",
    [("x",)])``.

    Spark knows its size and broadcasts it. Of ``spark.createDataFrame(rows)`` it does not, and shuffles the source.

    Args:
        spark: any frame's ``sparkSession``.
        schema: names and Spark types, as in ``"code string, rate decimal(5,2)"``.
        rows: tuples of Python values.

    Raises:
        MappingError: a row doesn't fit the schema.
    """
    struct = T.DataType.fromDDL(schema)
    if not isinstance(struct, T.StructType):
        raise MappingError(
            f"{schema!r} names no columns", remedy='write names and types: "code string, n int"'
        )
    arrow = to_arrow_schema(struct, timezone="UTC")
    try:
        columns = zip(*rows, strict=True) if rows else [()] * len(arrow)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, arrow, strict=True)]
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise MappingError(
            "constant rows don't fit their schema",
            where=schema,
            cause=str(error),
            remedy="give every row one value of the right type for each column",
        ) from error
    return spark.createDataFrame(pa.table(arrays, schema=arrow), struct)


def _spark_type(column: Column, schema: TableSchema) -> T.DataType:
    decimal = column.decimal()
    if decimal is not None:
        return T.DecimalType(*decimal)
    if column.type not in _SPARK:
        raise _unknown_type(column, schema)
    return _SPARK[column.type]


def arrow_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow type of a source table's rows, column by column."""
    fields = []
    for column in schema.columns:
        decimal = column.decimal()
        if decimal is None and column.type not in _ARROW:
            raise _unknown_type(column, schema)
        fields.append(pa.field(column.name, pa.decimal128(*decimal) if decimal else _ARROW[column.type]))
    return pa.schema(fields)


def _unknown_type(column: Column, schema: TableSchema) -> MappingError:
    return MappingError(
        f"column {column.name} has the unknown logical type {column.type!r}",
        where=str(schema.id),
        remedy="this is a fault of the source adapter: report it",
    )
