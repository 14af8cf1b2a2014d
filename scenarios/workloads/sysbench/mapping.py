"""sysbench's table under another name, its padded texts trimmed; and the tracked probes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("sample", key="sample_id")
def sample(sbtest1: DataFrame) -> DataFrame:
    """sysbench's rows."""
    return sbtest1.select(
        F.col("id").cast("bigint").alias("sample_id"),
        F.col("k").alias("bucket"),
        F.rtrim("c").alias("content"),
        F.rtrim("pad").alias("padding"),
    )


@mapping.target("pulse", key="pulse_id")
def pulse(probe: DataFrame) -> DataFrame:
    """Probes."""
    return probe.select(
        F.col("id").alias("pulse_id"),
        F.col("beat"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
