"""One safe a locker; its code stays unique."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("safe", key="safe_id")
def safe(locker: DataFrame) -> DataFrame:
    """One safe a locker."""
    return locker.select(
        F.col("id").alias("safe_id"),
        F.concat(F.lit("X-"), F.col("code")).alias("tag"),
        F.col("content"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
