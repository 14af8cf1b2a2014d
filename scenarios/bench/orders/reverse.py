"""The way back: one order a purchase, as it was."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("orders", key="id")
def orders(purchase: DataFrame) -> DataFrame:
    """One order a purchase."""
    return purchase.select(
        F.col("purchase_id").alias("id"),
        F.col("customer_id").alias("customer"),
        F.col("item_count").alias("items"),
        F.upper("status").alias("state"),
        F.coalesce("note", F.lit("")).alias("comment"),
        (F.col("amount_cents").cast("decimal(14,0)") / 100).cast("decimal(12,2)").alias("total"),
        F.col("discount").alias("rebate"),
        F.from_utc_timestamp("placed_at", "UTC").cast("timestamp_ntz").alias("created"),
        F.col("is_paid").cast("smallint").alias("paid"),
        F.col("channel").alias("source"),
    )
