"""The way back: a tally for every counter, a click for every hit."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("tally", key="id")
def tally(counter: DataFrame) -> DataFrame:
    """One tally a counter."""
    return counter.select(
        F.col("counter_id").cast("int").alias("id"),
        F.col("title").alias("label"),
        F.col("total").alias("hits"),
        F.col("client").alias("writer"),
        F.col("client_no").alias("write_no"),
    )


@mapping.target("click", key="id")
def click(hit: DataFrame) -> DataFrame:
    """One click a hit."""
    return hit.select(
        F.col("hit_id").alias("id"),
        F.col("counter_id").cast("int").alias("tally"),
        F.col("amount"),
        F.col("client").alias("writer"),
        F.col("client_no").alias("write_no"),
    )
