"""One slip a berth."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("slip", key="slip_id")
def slip(berth: DataFrame) -> DataFrame:
    """One slip a berth."""
    return berth.select(
        F.col("id").alias("slip_id"),
        F.col("cargo").alias("weight"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
