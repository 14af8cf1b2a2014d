"""One gauge a register: other names, states in small letters, the fee's text as whole cents."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import blank_to_null

mapping = Mapping()


@mapping.target("gauge", key="gauge_id")
def gauge(register: DataFrame) -> DataFrame:
    """One gauge a register."""
    return register.select(
        F.col("id").alias("gauge_id"),
        F.col("reading").alias("level"),
        F.lower("state").alias("status"),
        (F.col("fee").cast("decimal(16,2)") * 100).cast("bigint").alias("fee_cents"),
        blank_to_null("note").alias("remark"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
