"""Counters and their increments under new names; wider keys."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("counter", key="counter_id")
def counter(tally: DataFrame) -> DataFrame:
    """One counter a tally."""
    return tally.select(
        F.col("id").cast("bigint").alias("counter_id"),
        F.col("label").alias("title"),
        F.col("hits").alias("total"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )


@mapping.target("hit", key="hit_id")
def hit(click: DataFrame) -> DataFrame:
    """One hit a click."""
    return click.select(
        F.col("id").alias("hit_id"),
        F.col("tally").cast("bigint").alias("counter_id"),
        F.col("amount"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
